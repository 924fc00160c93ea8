"""list_files and search, with ripgrep and without."""

import asyncio
import os
import stat
import sys

import pytest

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.tools.catalogue import Catalogue
from duckflow.tools.searching import ripgrep as ripgrep_module
from duckflow.tools.searching.listing import file_matcher, list_tool
from duckflow.tools.searching.ripgrep import find_ripgrep, run_capped
from duckflow.tools.searching.search import search_tool
from fakes.access import access_to
from fakes.rows import every_row


@pytest.fixture(params=["ripgrep", "ourselves"])
def call(request, tmp_path):
    access = access_to(tmp_path)
    binary = find_ripgrep(tmp_path) if request.param == "ripgrep" else None
    assert binary or request.param == "ourselves"
    catalogue = Catalogue([list_tool(binary), search_tool(binary)])

    async def call(operation, **args):
        tool, parsed = catalogue.validate(Action(operation=operation, args=args))
        return (await tool.run(parsed, access)).text

    call.ripgrep = binary is not None
    return call


def plant(root, **files):
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def tree(tmp_path):
    for path in (
        "src/app/main.py",
        "src/app/deep/er/x.py",
        "src/lib.ts",
        "README.md",
        ".github/ci.yml",
        "日本/犬.txt",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"this is {path}\nneedle in {path}\n")
    for path in (".git/config", "node_modules/m/index.js", ".venv/lib/v.py", "src/__pycache__/c.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("needle that nobody looks for")
    return tmp_path


async def test_list_shows_files_and_folds_what_is_deeper(call, tree):
    assert (await call("list_files")).splitlines() == [
        "the workspace: 6 files",
        ".github/ci.yml",
        "README.md",
        "src/app/deep/ (1 files)",
        "src/app/main.py",
        "src/lib.ts",
        "日本/犬.txt",
    ]
    assert (await call("list_files", depth=1)).splitlines()[1:] == [
        ".github/ (1 files)",
        "README.md",
        "src/ (3 files)",
        "日本/ (1 files)",
    ]
    assert (await call("list_files", path="src/app/", depth=1)).splitlines() == [
        "src/app: 2 files",
        "src/app/deep/ (1 files)",
        "src/app/main.py",
    ]


async def test_list_finds_by_pattern_at_any_depth(call, tree):
    assert (await call("list_files", pattern="*.py")).splitlines() == [
        "the workspace: 2 files that match *.py",
        "src/app/deep/er/x.py",
        "src/app/main.py",
    ]
    assert (await call("list_files", path="src", pattern="app/*.py")).splitlines()[1:] == ["src/app/main.py"]
    assert await call("list_files", pattern="*.rs") == "the workspace: 0 files that match *.rs"


async def test_what_is_skipped_is_listed_when_it_is_named(call, tree):
    assert "node_modules/m/index.js" in await call("list_files", path="node_modules")
    assert ".git/config" in await call("list_files", path=".git")


async def test_list_of_what_is_no_folder_says_so(call, tree):
    for path, words in (
        ("README.md", "is a file, not folder"),
        ("none", "there is no such folder"),
        ("..", ".."),
    ):
        with pytest.raises(ToolError, match=words):
            await call("list_files", path=path)


async def test_list_is_cut_with_advice(call, tmp_path):
    for number in range(500):
        (tmp_path / f"f{number:03}").write_text("")
    lines = (await call("list_files")).splitlines()
    assert lines[0] == "the workspace: 500 files"
    assert lines[-1] == "… 100 more lines; give a folder, a pattern or a smaller depth"
    assert len(lines) == 402


async def test_names_that_are_no_text_are_spelled_out_and_temporary_ones_left_out(call, tmp_path):
    for name in (b"bad\xff", b"new\nline", b".duckflow-0123456789abcdef.tmp"):
        (tmp_path / os.fsdecode(name)).write_text("")
    listed = await call("list_files")
    assert "\\u000a" in listed or "new" not in listed
    assert "\n".join(listed.splitlines()) == listed
    assert "duckflow" not in listed


async def test_ignored_files_are_left_out_without_a_repository_too(tmp_path):
    access = access_to(tmp_path)
    plant(
        tmp_path, **{".gitignore": "*.log\nbuild/\n", "a.log": "needle", "build__b": "needle", "c": "needle"}
    )
    binary = find_ripgrep(tmp_path)
    catalogue = Catalogue([list_tool(binary), search_tool(binary)])
    for operation, args in (("list_files", {}), ("search", {"pattern": "needle"})):
        tool, parsed = catalogue.validate(Action(operation=operation, args=args))
        text = (await tool.run(parsed, access)).text
        assert "a.log" not in text
        assert "build" not in text
        assert "c" in text


async def test_search_shows_the_lines_of_each_file_under_its_path(call, tree):
    text = await call("search", pattern="needle in s", glob="*.py")
    assert text.splitlines() == [
        "2 matching lines in 2 files",
        "src/app/deep/er/x.py (1 line)",
        "2:needle in src/app/deep/er/x.py",
        "src/app/main.py (1 line)",
        "2:needle in src/app/main.py",
    ]
    found = await call("search", pattern="needle")
    assert found.startswith("6 matching")
    assert ".github/ci.yml (1 line)" in found, "what only changes ask about may be read"
    assert "nobody" not in found
    assert (await call("search", pattern="犬")).splitlines()[1:] == [
        "日本/犬.txt (2 lines)",
        "1:this is 日本/犬.txt",
        "2:needle in 日本/犬.txt",
    ]
    assert (await call("search", pattern=r"^this\s+is.*md$", path="README.md")).splitlines()[1:] == [
        "README.md (1 line)",
        "1:this is README.md",
    ]
    assert await call("search", pattern="nowhere to be found") == (
        "no line matches nowhere to be found in . "
        "(protected files, and lines that hold a key or token, are not searched)"
    )


async def test_a_pattern_is_only_a_pattern(call, tree):
    (tree / "dashes").write_text("--files\n-e x\n--pre=touch\n")
    assert "\n1:--files" in await call("search", pattern="--files")
    assert "\n3:--pre=touch" in await call("search", pattern="--pre=touch")
    assert "\n2:-e x" in await call("search", pattern="-e", glob="dashes")
    assert "no line matches" in await call("search", pattern="--files", glob="--pre=x")


async def test_a_pattern_that_is_no_regular_expression_is_searched_as_text_and_that_is_said(call, tree):
    """J: a search that fails would stop the actions behind it."""
    (tree / "code.py").write_text("    style(text, fg)\nstyled\na\\d\n")
    for pattern, line in (
        ("style(text", "1:    style(text, fg)"),
        ("*, fg", ""),
        ("\\d[", ""),
        ("a\\", "3:a\\d"),
    ):
        said = (await call("search", pattern=pattern, path="code.py")).splitlines()
        head, found = said[:-1], said[-1] if len(said) > 2 else ""
        assert said[0].startswith(f"{pattern} is no regular expression ("), said
        assert said[0].endswith("), so it was searched as plain text.")
        assert found == line, (pattern, head)


async def test_look_around_works_whatever_searches(call, tree):
    (tree / "code.py").write_text("def _a(): pass\ndef b(): pass\nbb\n")
    assert (await call("search", pattern=r"def (?!_)")).splitlines()[1:] == [
        "code.py (1 line)",
        "2:def b(): pass",
    ]
    assert (await call("search", pattern=r"(b)\1")).splitlines()[1:] == ["code.py (1 line)", "3:bb"]


async def test_crlf_lines_match_to_their_end(call, tmp_path):
    (tmp_path / "dos").write_bytes(b"alpha\r\nbeta\r\n")
    assert (await call("search", pattern="alpha$")).splitlines()[1:] == ["dos (1 line)", "1:alpha"]


async def test_protected_files_are_not_searched_nor_betrayed(call, tree):
    (tree / ".env").write_text("KEY=abcdef needle\n")
    (tree / "sub").mkdir()
    (tree / "sub/id_rsa").write_text("KEY=abcdef\n")
    right, wrong = await call("search", pattern="KEY=a"), await call("search", pattern="KEY=b")
    assert right.replace("KEY=a", "") == wrong.replace("KEY=b", "")
    assert ".env" not in await call("search", pattern="needle")
    assert ".env (1 line)\n1:KEY=abcdef needle" in await call("search", pattern="KEY", path=".env")
    assert ".github/ci.yml (1 line)" in await call("search", pattern="needle", path=".github")


async def test_SAFETY_14_a_secret_in_an_ordinary_file_can_not_be_guessed_by_searching(call, tree):
    token = "ghp_" + "a1B2" * 9
    body = "MIIEpAIBAAKCAQEA7bq3kQ3vR8tZ1mN6pX4wB9yD"
    key = f"-----BEGIN RSA PRIVATE {'KEY'}-----\n{body}\n{body}\n-----END RSA PRIVATE {'KEY'}-----\n"
    (tree / "settings.py").write_text(f"plain = 1\ntoken = '{token}'\n{key}")
    for right, wrong in (
        ("ghp_a1", "ghp_b1"),
        ("token = '(?!ghp_a)", "token = '(?!ghp_b)"),
        ("MIIEp", "MIIEq"),
    ):
        answers = [(await call("search", pattern=one)).replace(one, "") for one in (right, wrong)]
        assert answers[0] == answers[1], right
    assert "settings.py (1 line)\n1:plain = 1" in await call("search", pattern="plain")
    around = await call("search", pattern="plain", context=3)
    assert "2-(a line with a key or token)" in around
    assert "a1B2" not in around
    assert body not in around


async def test_long_lines_are_cut_around_the_match(call, tmp_path):
    (tmp_path / "wide").write_text("あ" * 50_000 + "needle" + "x" * 50_000 + "\n" + "y" * 900 + "needle\n")
    lines = (await call("search", pattern="needle")).splitlines()
    assert all(len(line) < 460 for line in lines)
    assert lines[2].startswith("1:…あ")
    assert "あneedlex" in lines[2]
    assert lines[3].endswith("yneedle")


async def test_many_matches_are_shared_out_fairly_and_what_is_left_out_is_said(call, tmp_path):
    (tmp_path / "a.log").write_text("    needle\n" * 5000)
    (tmp_path / "b.py").write_text("".join(f"{n}\n" for n in range(300)) + "  needle\n" * 150)
    (tmp_path / "c.py").write_text("needle\n" * 2)
    lines = (await call("search", pattern="needle")).splitlines()
    assert lines[0] == "at least 1152 matching lines in 3 files"
    assert lines[1] == "a.log (1000+ lines, 99 shown)"
    assert lines[2] == "1:    needle", "the indentation stays"
    assert "b.py (150 lines, 99 shown)" in lines
    assert "… 51 more in b.py, lines 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, …" in lines
    assert lines[-3:] == ["c.py (2 lines)", "1:needle", "2:needle"]
    assert len(lines) == 206


async def test_the_files_that_find_no_room_are_counted_and_some_named(call, tmp_path):
    for number in range(100):
        (tmp_path / f"f{number:03}").write_text("needle\n" * 2)
    lines = (await call("search", pattern="needle")).splitlines()
    assert lines[0] == "200 matching lines in 100 files"
    assert lines[-1].startswith("Not shown, 40 more files: f060 (2), f061 (2), ")
    assert lines[-1].endswith("f079 (2) and 20 more")


async def test_context_shows_the_lines_around_each_match(call, tmp_path):
    (tmp_path / "a.py").write_text("".join(f"  line {n}\n" for n in range(1, 21)))
    assert (await call("search", pattern="line (3|5|20)$", context=1)).splitlines() == [
        "3 matching lines in 1 file",
        "a.py (3 lines)",
        *("2-  line 2", "3:  line 3", "4-  line 4", "5:  line 5", "6-  line 6", "--"),
        *("19-  line 19", "20:  line 20"),
    ]


async def test_binary_files_and_pipes_are_passed_over(call, tmp_path):
    (tmp_path / "binary").write_bytes(b"needle\0needle\n")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("needle\n")
    assert "text (1 line)\n1:needle" in await call("search", pattern="needle")
    with pytest.raises(ToolError, match="can not be searched"):
        await call("search", pattern="needle", path="pipe")


async def test_links_are_not_followed_out(call, tmp_path):
    root, outside = tmp_path / "in", tmp_path.parent / f"{tmp_path.name}_outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("needle\n")
    root.mkdir()
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret.txt")
    assert "secret" not in await call("list_files", path="in")
    assert "no line matches" in await call("search", pattern="needle", path="in")
    for operation, args in (("list_files", {}), ("search", {"pattern": "needle"})):
        with pytest.raises(ToolError, match=r"outside|link"):
            await call(operation, path="in/folder", **args)


async def test_what_ripgrep_says_of_other_places_is_not_believed(tmp_path):
    """As if a folder had been swapped for a link while it ran."""
    root = tmp_path / "ws"
    (root / "a").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text("secret\n")
    (root / "link").symlink_to("../outside")
    lying = tmp_path / "rg"
    lying.write_text(
        "#!/bin/sh\n"
        'case "$*" in *--files*) printf "./link/secret.txt\\0../outside/secret.txt\\0./a/none\\0";;\n'
        '*) printf "./link/secret.txt\\0001:x\\n../outside/secret.txt\\0001:x\\n";;\n'
        "esac\n"
    )
    lying.chmod(0o755)
    access = access_to(root)
    catalogue = Catalogue([list_tool(lying), search_tool(lying)])
    for operation, args in (("list_files", {}), ("search", {"pattern": "x"})):
        tool, parsed = catalogue.validate(Action(operation=operation, args=args))
        text = (await tool.run(parsed, access)).text
        assert "secret" not in text
        assert "a/none" not in text


def test_an_rg_inside_the_workspace_is_never_used(tmp_path, monkeypatch):
    ours = find_ripgrep(tmp_path)
    assert ours is not None
    assert ours.is_absolute()
    planted = tmp_path / "bin/rg"
    planted.parent.mkdir()
    planted.write_text("#!/bin/sh\n")
    planted.chmod(planted.stat().st_mode | stat.S_IXUSR)
    link = tmp_path.parent / f"{tmp_path.name}_bin"
    link.symlink_to(tmp_path / "bin")
    monkeypatch.setattr(sys, "executable", str(planted.parent / "python"))
    monkeypatch.setenv("PATH", f"{link}:{planted.parent}")
    monkeypatch.chdir(planted.parent)
    assert find_ripgrep(tmp_path) in (None, ours)
    assert find_ripgrep(ours.parent) != ours


async def test_no_setting_from_the_environment_reaches_ripgrep(call, tree, monkeypatch, tmp_path_factory):
    settings = tmp_path_factory.mktemp("home") / "ripgreprc"
    settings.write_text("--invert-match\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(settings))
    assert (await call("search", pattern="犬", path="README.md")).startswith("no line matches")


async def test_a_pattern_that_never_ends_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(ripgrep_module, "TIME_LIMIT_S", 0.5)
    (tmp_path / "a").write_text("a" * 60 + "b\n")
    tool = search_tool(None)
    with pytest.raises(ToolError, match="took longer than"):
        await tool.run(tool.args(pattern="(a+)+$"), access_to(tmp_path))


async def test_output_past_the_cap_ends_the_program(monkeypatch):
    monkeypatch.setattr(ripgrep_module, "OUTPUT_CAP", 100_000)
    script = "import sys\nwhile True: sys.stdout.write('x' * 100_000)"
    output = await run_capped([sys.executable, "-c", script])
    assert len(output.output) == 100_000
    assert not output.complete


async def test_a_program_that_is_gone_is_said(tmp_path):
    (tmp_path / "a").write_text("x")
    tool = search_tool(tmp_path / "gone/rg")
    with pytest.raises(ToolError, match="rg could not be started"):
        await tool.run(tool.args(pattern="x"), access_to(tmp_path))


async def test_cancelling_ends_the_program(tmp_path):
    script = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    task = asyncio.create_task(run_capped([sys.executable, "-c", script]))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@every_row(
    ("pattern", "path", "matches"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/*.py", "lib/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/deep/er/a.py", True),
        ("**/test_*.py", "test_a.py", True),
        ("**", "a/b", True),
        ("src/**", "src/a/b", True),
        ("src/**", "lib/a", False),
        ("*.{ts,tsx}", "a.tsx", True),
        ("*.{ts,tsx}", "a.js", False),
        ("{src,lib}/{a,b}.py", "lib/b.py", True),
        ("./src/a.py", "src/a.py", True),
        ("[ab].txt", "b.txt", True),
        ("[!ab].txt", "b.txt", False),
        ("*犬*", "日本/柴犬.txt", True),
        ("?.py", "あ.py", True),
        ("a/**/b/**/c", "a/x/b/y/z/c", True),
        ("a/**/b/**/c", "a/x/y/z/c", False),
        ("*a*a*a*a*a*a*a*a*a*b", "a" * 200, False),
        ("/".join(["**"] * 40), "/".join("a" * 1500), True),
    ],
)
def test_patterns_for_files(pattern, path, matches):
    assert file_matcher(pattern)(path) is matches


def test_a_pattern_with_too_many_alternatives_is_refused():
    with pytest.raises(ToolError, match="too many alternatives"):
        file_matcher("{a,b}" * 20)


async def test_SAFETY_15_a_pipe_in_place_of_an_ignore_file_costs_nothing(call, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/text").write_text("needle\n")
    os.mkfifo(tmp_path / ".gitignore")
    os.mkfifo(tmp_path / "sub/.ignore")
    assert "sub/text (1 line)\n1:needle" in await call("search", pattern="needle", path="sub")


async def test_SAFETY_15_a_very_deep_folder_is_not_gone_into(call, tmp_path):
    (tmp_path / "text").write_text("needle\n")
    folder = os.open(tmp_path, os.O_RDONLY)
    for depth in range(300):
        os.mkdir("d", dir_fd=folder)
        deeper = os.open("d", os.O_RDONLY, dir_fd=folder)
        if depth == 200:
            os.close(os.open("text", os.O_WRONLY | os.O_CREAT, dir_fd=deeper))
        os.close(folder)
        folder = deeper
    os.close(folder)
    assert (await call("search", pattern="needle")).splitlines() == [
        "1 matching line in 1 file",
        "text (1 line)",
        "1:needle",
    ]
