"""Names that ask and names that are closed, as written and as resolved (SAFETY 4)."""

import pytest

from duckflow.domain.errors import ToolError
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.protected import is_secret, is_secret_in, protected_kinds, protection_of

ASKING = [
    ".git",
    ".git/config",
    ".git/hooks/pre-commit",
    "sub/.git/HEAD",
    "_darcs/prefs/defaults",
    ".fslckout",
    ".GIT/config",
    ".Git",
    "．git/config",
    ".ｇｉｔ/hooks",
    ".git\u200c/config",
    ".git./config",
    "GIT~1/config",
    ".git::$INDEX_ALLOCATION/config",
    "a/.config/git/ignore",
    ".env",
    ".env.local",
    ".ENV",
    ".envrc",
    "prod.env",
    "server.pem",
    "server.KEY",
    "id_rsa",
    "id_ed25519.pub",
    ".ssh/config",
    ".npmrc",
    ".netrc",
    ".yarnrc.yml",
    ".git-credentials",
    ".htpasswd",
    ".cargo/credentials.toml",
]
START_UP = """
.ghci .ocamlinit .utoprc .iex.exs .erlang .perldb .perldb.ini .byebugrc .rdbgrc .rdbgrc.rb .jdbrc jdb.ini
.octaverc .gdbearlyinit .lldbinit-lldb .pdbrc.py .pythonrc.py .xonshrc .rdata .juliarc.jl .sbclrc
.clisprc .eclrc .guile .racketrc .tclshrc .wishrc .expectrc .swiplrc .gprc .gaprc .scilab .gnuplot
.mongorc.js .mongoshrc.js .duckdbrc .user.ini .mkshrc .shrc .yashrc .config/nushell/env.nu
.config/elvish/rc.elv .rvmrc .shadowenv.d/1.lisp .flox/env.json .pkgx.yaml lefthook.json .lefthook.json
irbrc .psysh.php startup.m .lite_project.lua
lefthook-local.json .lefthook-local.yml lefthook-local.toml .config/lefthook.yml prek.toml
captainhook.json grumphp.yml simple-git-hooks.json lint-staged.config.mjs .rusty-hook.toml hk.pkl
.ycm_extra_conf.py .luarc.json rust-analyzer.toml .solargraph.yml .factorypath .nanorc .kakrc
.builds/a.yml .drone.star .cirrus.star circle.yml bitrise.yml .packit.yaml .prow.yaml
.scheme.init .csirc .singularrc profile.do autoexec.sas jupyter_server_config.py ipython_config.py .eclipserc
.vimrc.local .exrc.lua coc-settings.json x.sublime-build .bsp/sbt.json .config/direnv/direnvrc
action.yml azure-pipelines/build.yml Jenkinsfile.release vercel.json .gitlab-ci/x.yml screwdriver.yaml
.psqlrc-14 .tmux.conf.local .local/bin/ls .cargo/env .config/i3/config .arcconfig
cline_mcp_settings.json JULES.md .devin/x .rovodev/x lib/sitecustomize/__init__.py usercustomize.pyc
"""
GUARDED = [
    ".bashrc",
    ".zshrc",
    ".profile",
    "home/.bash_profile",
    ".config/fish/config.fish",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    "project.code-workspace",
    ".nvim.lua",
    ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
    ".gitlab-ci.yaml",
    "Jenkinsfile",
    "JENKINSFILE",
    ".husky/pre-commit",
    ".mcp.json",
    "mcp.json",
    ".cursor/mcp.json",
    ".claude/settings.json",
    ".venv/bin/python",
    "sub/venv/bin/pip",
    "tools/bin/activate.fish",
    "lib/a.pth",
    "sitecustomize.py",
    ".githooks/pre-commit",
    "AGENTS.md",
    "sub/agents.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".aider.conf.yml",
    ".agents/x.md",
    ".codex/config.toml",
    ".goosehints",
    ".cargo/config.toml",
    "mise.toml",
    ".tool-versions",
    ".pnpmfile.cjs",
    "pip.conf",
    "uv.toml",
    "lefthook.yml",
    ".pre-commit-config.yaml",
    ".devcontainer/devcontainer.json",
    ".gdbinit",
    ".tmux.conf",
    "gradle/wrapper/gradle-wrapper.properties",
    ".mvn/jvm.config",
    ".yarn/releases/yarn.cjs",
    ".lintstagedrc.json",
    ".direnv/bin/x",
]
PLAIN = [
    "git",
    "gitignore",
    ".gitignore",
    ".gitattributes",
    "environment.py",
    "env.py",
    "src/keys.py",
    "monkey.py",
    "keyboard",
    "key.py",
    "config/fish",
    "README.md",
    "git/hooks",
    "docs/.config.md",
    "bashrc",
    "githubs/x",
    "Makefile",
    "justfile",
    "package.json",
    "tests/conftest.py",
    "bin/tool",
    "src/bin/main.rs",
    ".env.example",
    "deploy/.env.sample",
    ".python-version",
    ".nvmrc",
    "docs/agents.html",
    "scripts/build.py",
    "src/pages/activate/index.tsx",
    ".cargo/registry/x",
    ".venv/lib/python3.11/site-packages/a.py",
]


def test_protected_names_ask_SAFETY_4():
    assert [path for path in ASKING if protection_of(path) != "asks"] == []


def test_what_others_run_or_believe_may_be_read_and_asks_before_a_change_SAFETY_4():
    assert [path for path in (*GUARDED, *START_UP.split()) if protection_of(path) != "guarded"] == []


def test_a_template_is_ordinary_and_what_is_below_a_folder_of_that_name_is_not():
    assert protection_of(".ENV.example") == "none"
    assert protection_of(".env.example/.env") == "asks"
    assert protection_of(".ssh/.env.example") == "asks"
    assert protection_of(".github/.env.example") == "guarded"


def test_a_name_with_a_space_at_its_end_is_compared_without_it():
    assert protection_of(".git /config") == "asks"
    assert protection_of(".env ") == "asks"


def test_other_names_do_not():
    assert [path for path in PLAIN if protection_of(path) != "none"] == []


def test_every_entry_of_the_table_matches_and_holds_below_and_says_why():
    wrong = []
    for kind, row in protected_kinds().items():
        for pattern in row.patterns:
            name = pattern.replace("y*ml", "yml").replace("[0-9]", "1").replace("*", "x")
            if protection_of(name) != row.protection:
                wrong.append((kind, name))
            if kind != "templates" and protection_of(f"a/{name.upper()}/below") != row.protection:
                wrong.append((kind, f"{name}/below"))
        assert row.why
    assert wrong == []


def test_the_projects_own_configuration_of_duckflow_is_denied(tmp_path):
    workspace = Workspace(tmp_path)
    assert workspace.protection("duckflow.toml") == "denied"
    assert workspace.protection("DuckFlow.TOML") == "denied"
    with pytest.raises(ToolError, match="closed to tools"):
        workspace.write_text("duckflow.toml", "x")


def test_duckflows_folders_are_denied_even_inside_the_workspace(tmp_path):
    (tmp_path / "state/duckflow/deep").mkdir(parents=True)
    (tmp_path / "state/duckflow/deep/file").write_text("x")
    (tmp_path / "alias").symlink_to("state/duckflow")
    workspace = Workspace(tmp_path, denied=[tmp_path / "state/duckflow", tmp_path / "config/duckflow"])
    for path in ("state/duckflow", "state/DUCKFLOW/deep/file", "alias/deep/file", "config/duckflow/new"):
        assert workspace.protection(path) == "denied", path
    for attempt in (workspace.read_text, workspace.delete, workspace.digest, workspace.list):
        with pytest.raises(ToolError, match="closed to tools"):
            attempt("state/duckflow/deep/file")
        with pytest.raises(ToolError, match="closed to tools"):
            attempt("alias/deep/file")
    with pytest.raises(ToolError, match="closed to tools"):
        workspace.move("state/duckflow/deep/file", "mine")
    with pytest.raises(ToolError, match="closed to tools"):
        workspace.write_text("config/duckflow/new", "x")
    assert [entry.path for entry in workspace.list(depth=9).entries] == ["alias", "state"]
    assert workspace.protection("state/duckflow2/file") == "none"


def test_a_link_is_as_protected_as_what_it_leads_to(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("x")
    (tmp_path / "notes").symlink_to(".git")
    workspace = Workspace(tmp_path)
    assert workspace.protection("notes/config") == "asks"
    assert workspace.protection("notes/new") == "asks"
    for attempt in (workspace.read_text, workspace.delete):
        with pytest.raises(ToolError, match=r"leads to \.git/config, which is protected"):
            attempt("notes/config")
    with pytest.raises(ToolError, match=r"leads to \.git/new, which is protected"):
        workspace.write_text("notes/new", "x")
    with pytest.raises(ToolError, match=r"which is protected"):
        workspace.list("notes")
    assert workspace.read_text(".git/config") == "x"


def test_a_name_in_a_folder_is_a_secret_exactly_if_its_path_is():
    """The quick question that is asked for every file of a folder, over all names that have a rule."""
    patterns = protected_kinds()["keys_and_secrets"].patterns
    parts = {part.replace("*", "x") for pattern in patterns for part in pattern.split("/")}
    names = sorted(
        {"notes.txt", "src", *parts, *map(str.upper, parts), *(f"{part}:stream" for part in parts)}
    )
    wrong = [
        (above, name)
        for above in names
        for name in names
        if is_secret_in(above, name) != is_secret(f"{above}/{name}")
    ]
    assert not wrong
    assert is_secret_in("src", ".env")
    assert is_secret_in(".config", "gh")
    assert not is_secret_in("src", "gh")
