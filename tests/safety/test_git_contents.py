"""Contents of git's index, objects and refs are judged like files (G10, SAFETY 4)."""

import hashlib
import itertools
import os
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from duckflow.config.settings import GateSettings
from duckflow.domain.files.effects import Effect, Effects
from duckflow.safety.policy.effects import FileVersions, assess_effects
from duckflow.safety.policy.git_config import GitPlaces, UnreadableFile
from duckflow.safety.policy.git_contents import is_steering
from duckflow.safety.policy.git_index import read_index
from duckflow.safety.sandbox.view.git_settings import read_objects
from fakes.repository import git
from fakes.rows import every_row

BLOB = "d9" * 20


def files_of(folder: Path) -> dict[str, bytes]:
    found = (one for one in folder.rglob("*") if one.is_file() and not one.is_symlink())
    return {str(one.relative_to(folder)): one.read_bytes() for one in found}


def listed(folder: Path) -> set[tuple[str, int, str]]:
    """Return the index as git itself lists it."""
    entries = (
        one.split("\t") for one in git(folder, "ls-files", "--stage", "--sparse", "-z").split("\0") if one
    )
    return {(name, int(about.split()[0], 8), about.split()[1]) for about, name in entries}


def project(folder: Path, kind: str = "sha1") -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main", f"--object-format={kind}", "--template=")
    for number in range(60):
        path = folder / f"d{number % 4}" / f"e{number % 3}" / f"{'x' * (number % 9)}{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n")
    workflow = folder / ".github/workflows/ci.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text("on: push\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


STATES = {
    "as committed": (),
    "changed": ("echo 1 > new; git add .",),
    "intended": ("echo 1 > new; git add -N new",),
    "in conflict": (
        "git switch -qc other; echo 1 > new; git add .; git commit -qm 1; git switch -q main",
        "echo 2 > new; git add .; git commit -qm 2; git merge -q other || true",
    ),
    "split": ("git update-index --split-index", "echo 1 > d0/new; rm -r d1; echo 2 > d2/e2/2; git add -A"),
    "sparse": ("git sparse-checkout init --cone --sparse-index",),
    "with caches": ("git update-index --untracked-cache --force-write-index",),
}


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_the_index_is_read_as_git_reads_it_G10(tmp_path, kind, monkeypatch):
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.com")
    for version in ("2", "3", "4"):
        for name, commands in STATES.items():
            folder = project(tmp_path / f"{version}-{name}", kind)
            git(folder, "config", "index.version", version)
            git(folder, "update-index", "--index-version", version)
            for command in commands:
                subprocess.run(["sh", "-c", command], cwd=folder, check=True, capture_output=True)
            found = read_index(".git/index", files_of(folder).get, kind)
            assert {tuple(one) for one in found} == listed(folder), (version, name)


def entry(name: bytes, mode: int = 0o100644, flags: int | None = None) -> bytes:
    told = len(name) if flags is None else flags
    made = (
        struct.pack(">10I", *(0,) * 6, mode, 0, 0, 0) + bytes.fromhex(BLOB) + struct.pack(">H", told) + name
    )
    return made + b"\0" * (8 - len(made) % 8)


def index(*entries: bytes, more: bytes = b"", version: int = 2, count: int | None = None) -> bytes:
    made = struct.pack(">4sII", b"DIRC", version, len(entries) if count is None else count)
    made += b"".join(entries) + more
    return made + hashlib.sha1(made).digest()


def extension(name: bytes, content: bytes) -> bytes:
    return name + struct.pack(">I", len(content)) + content


PLAIN = entry(b"a"), entry(b"b")
CRAFTED = {
    "nothing": b"",
    "no signature": b"x" * 100,
    "another sum": index(*PLAIN)[:-1] + b"x",
    "a later version": index(*PLAIN, version=5),
    "too few": index(*PLAIN, count=3),
    "too many": index(*PLAIN, count=1),
    "not in order": index(*reversed(PLAIN)),
    "twice": index(PLAIN[0], PLAIN[0]),
    "another length": index(entry(b"a" * 9, flags=3)),
    "no name": index(entry(b"")),
    "extended": index(entry(b"a", flags=0x4001)),
    "a folder": index(entry(b"a/", mode=0o40000)),
    "an unknown extension": index(*PLAIN, more=extension(b"evil", b"")),
    "an extension beyond the end": index(*PLAIN, more=b"TREE" + struct.pack(">I", 99)),
    "other entries for threads": index(
        *PLAIN, more=extension(b"IEOT", struct.pack(">III", 1, 20, 1) + struct.pack(">II", 90, 1))
    ),
    "other extensions for threads": index(*PLAIN, more=extension(b"EOIE", struct.pack(">I", 12) + bytes(20))),
    "a tree of other files": index(*PLAIN, more=extension(b"TREE", b"\x002 0\n" + b"\1" * 20)),
    "a shared file that is missing": index(*PLAIN, more=extension(b"link", b"\1" * 20 + bytes(16))),
}


@every_row("data", [*CRAFTED.values()])
def test_an_index_that_git_would_not_write_is_not_read_G10(data):
    with pytest.raises(UnreadableFile):
        read_index(".git/index", {".git/index": data}.get, "sha1")


def test_an_index_without_a_sum_is_read():
    data = index(*PLAIN)[:-20] + bytes(20)
    assert {one.path for one in read_index("i", {"i": data}.get, "sha1")} == {"a", "b"}


def judged(path: str, after: bytes):
    effect = Effect(path=path, kind="changed", before="1", after="2", mode_before=0o644, mode_after=0o644)
    contents = FileVersions({".git/HEAD": b"ref: refs/heads/main"}.get, {path: after}.get)
    return assess_effects(Effects(effects=(effect,)), contents, GateSettings())


STEERING = (
    *(".git/hooks/post-checkout", "../file", "/file", "a/../b", "a//b", "./a", "sub/.GIT/config", "git~1/x"),
    *(".git./x", ".git /x", ".git:x", ".g\u200cit/config", "a\\..\\b", "A/.Git"),
)


@every_row("path", STEERING)
def test_names_that_lead_into_git_or_out_of_the_folder_ask_G10(path):
    assert is_steering(path)
    found = judged(".git/index", index(entry(path.encode())))
    assert (found.risk, found.reasons) == ("high", ("git_program",))


def test_an_index_that_can_not_be_read_asks_and_ordinary_names_do_not_G10():
    assert judged(".git/index", b"junk").reasons == ("unseen",)
    assert judged(".git/sharedindex.1", b"junk").risk == "low"
    assert judged(".git/index", index(entry(b".gitignore"), entry(b"src/digit/a..b"))).risk == "low"


def test_an_object_with_another_name_or_with_bad_entries_asks_G10():
    def found(data: bytes, name: str = ""):
        name = name or hashlib.sha1(data).hexdigest()
        return judged(f".git/objects/{name[:2]}/{name[2:]}", zlib.compress(data)).reasons

    def tree(*names: bytes):
        content = b"".join(b"100644 " + name + b"\0" + bytes.fromhex(BLOB) for name in names)
        return b"tree %d\0" % len(content) + content

    assert found(b"blob 2\0x\n") == ()
    assert found(tree(b"a", b"b")) == ()
    assert found(b"blob 2\0x\n", "ab" * 20) == ("unseen",)
    assert found(b"blob 3\0x\n") == ("unseen",)
    assert found(b"blob 2\0\n\n") == ("mask",)
    for names in ((b"..",), (b".git",), (b"a/b",), (b"GIT~1",), (b"",), (b"a", b"a")):
        assert found(tree(*names)) == ("git_program",), names
    for path in ("pack/pack-1.pack", "pack/pack-1.idx", "pack/multi-pack-index", "info/commit-graph"):
        assert judged(f".git/objects/{path}", b"x").reasons == ("unseen",), path


def test_large_files_have_the_content_that_their_name_promises_G10():
    digest = hashlib.sha256(b"x").hexdigest()
    for after, expected in ((digest, ()), ("2", ("git_program",))):
        path = f".git/lfs/objects/{digest[:2]}/{digest[2:4]}/{digest}"
        effect = Effect(path=path, kind="created", after=after, mode_after=0o644)
        contents = FileVersions({}.get, {path: b"x"}.get)
        assert assess_effects(Effects(effects=(effect,)), contents, GateSettings()).reasons == expected


def test_a_commit_with_a_line_that_is_no_parent_asks_G10():
    data = f"tree {BLOB}\nobject {BLOB}\nparent {BLOB}\nauthor a <a> 1 +0\n\nx".encode()
    data = b"commit %d\0" % len(data) + data
    name = hashlib.sha1(data).hexdigest()
    found = judged(f".git/objects/{name[:2]}/{name[2:]}", zlib.compress(data))
    assert found.reasons == ("unseen",)


def test_repositories_without_git_folder_and_places_of_objects_are_judged_too_G10():
    def found(path: str, after: bytes, **before: bytes):
        effect = Effect(path=path, kind="changed", before="1", after="2", mode_before=0o644, mode_after=0o644)
        known = {"gd/HEAD": b"ref: refs/heads/main", ".git/config": b"", **before}
        contents = FileVersions(known.get, {**known, path: after}.get)
        return assess_effects(Effects(effects=(effect,)), contents, GateSettings()).reasons

    assert found("gd/index", index(entry(b"../a"))) == ("git_program",)
    assert found("gd/index", index(entry(b".github/x.yml"))) == ("protected",)
    assert found("gd/index", index(entry(b"a"))) == ()
    assert found("other/index", b"words") == ()
    alternates = {".git/objects/info/alternates": b"../../common\n", "common/info/alternates": b"../more\n"}
    for path in ("common/ab/x", "more/pack/x.pack"):
        assert found(path, b"", **alternates) == ("git_program",), path
    assert found("src/a", b"", **alternates) == ()
    settings = {".git/config": b"[init]\n\ttemplateDir = tools/template\n"}
    assert found("tools/template/hooks/post-checkout", b"", **settings) == ("git_program",)


WRITE = "$(echo evil | git hash-object -w --stdin)"
STAGED = f"git update-index --add --cacheinfo 100644,{WRITE},.github/workflows/x.yml"
RUNS = f"git update-index --add --cacheinfo 100755,{WRITE},run"
HIDDEN = f"{STAGED}; tree=$(git write-tree); git reset -q; evil=$(git commit-tree -p HEAD -m x $tree)"
ENTERING = (
    STAGED,
    RUNS,
    RUNS.replace("100755", "100644").replace(",run", ",run.sh"),
    f"{STAGED}; git commit -qm x",
    HIDDEN,
    f"{HIDDEN}; git update-ref refs/heads/main $evil",
    f"{HIDDEN}; git tag -a -m x x $evil; git pack-refs --all",
    f"{HIDDEN}; git tag x $tree",
    "git read-tree pr",
    "git update-ref refs/heads/main pr",
    "git symbolic-ref HEAD refs/heads/pr",
    "git branch topic pr",
    "git update-ref -d refs/heads/main; git update-ref refs/heads/main pr",
    "echo $(git rev-parse pr) refs/heads/main > .git/packed-refs; rm .git/refs/heads/main",
    "mkdir .git/rebase-merge; git rev-parse pr > .git/rebase-merge/orig-head",
    "git rev-parse pr > .git/ORIG_HEAD",
    "git rev-parse pr > .git/MERGE_AUTOSTASH",
    "mkdir .git/rebase-apply; git rev-parse pr > .git/rebase-apply/autostash",
    "echo pr > .git/BISECT_START",
    "echo pr~0 > .git/BISECT_START",
    "mkdir .git/rebase-merge; echo pick $(git rev-parse pr) > .git/rebase-merge/git-rebase-todo",
    "echo '; touch x' > .git/BISECT_NAMES",
    "mkdir .git/sequencer; echo pick $(git rev-parse --short pr) > .git/sequencer/todo",
    "git replace HEAD pr",
    "echo x > AGENTS.md; git add .; git commit -qm x; rm AGENTS.md",
    "git update-index --add --cacheinfo 120000,$(printf .git/hooks | git hash-object -w --stdin),x",
    "echo 'on: pull' > .github/workflows/ci.yml; git stash -q",
    f"git update-index --split-index; {STAGED}",
    f"{STAGED}; mv .git/index .git/x; cp .git/x .git/index; rm .git/x",
)
OVERLOOKING = (
    "git update-index --skip-worktree d0/e0/0",
    "git update-index --assume-unchanged d0/e0/0",
    "git update-index --split-index; git update-index --skip-worktree d0/e0/0",
)
LOSING = (
    "rm -f .git/objects/pack/*",
    "git unpack-objects < $(ls .git/objects/pack/*.pack); rm -f .git/objects/pack/*",
    "git update-ref -d refs/heads/pr; git reflog expire --expire=now --all; git gc -q --prune=now",
)
EVERYDAY = (
    "echo 2 >> new; git add .; git commit -qm 2; git commit -q --amend -m 3",
    "git switch -qc topic; echo 2 >> new; git commit -qam 2; git switch -q main; git merge -q topic",
    "echo 2 >> d0/e0/0; git stash -q; git stash pop -q",
    "git tag v1; git tag -a v2 -m v2; git pack-refs --all",
    "git reset -q --soft HEAD~1; git reset -q",
    "git mv d0 d9; git commit -qm moved; git revert --no-edit HEAD",
    "git update-index --split-index; echo 1 > new; git add new",
    "git bisect start HEAD HEAD~1; git bisect reset",
    "git bisect start -- d0 'd 1'",
    "GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD~1",
)


@pytest.fixture
def reasons(tmp_path):
    """Function that lets a command work in a repository and returns the reasons to ask about it."""
    who = {f"GIT_{role}_{what}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    alone = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    template = project(tmp_path / "template")
    (template / "new").write_text("1\n")
    git(template, "add", ".")
    git(template, "commit", "-qm", "second")
    git(template, "switch", "-qc", "pr")
    (template / ".github/workflows/evil.yml").write_text("evil\n")
    git(template, "add", ".")
    git(template, "commit", "-qm", "pr")
    git(template, "switch", "-q", "main")
    git(template, "repack", "-adq")

    numbers = itertools.count()

    def judge(command: str) -> tuple[str, ...]:
        number = next(numbers)
        old, new = tmp_path / f"{number}-old", tmp_path / f"{number}-new"
        for copy in (old, new):
            subprocess.run(["cp", "-a", str(template), str(copy)], check=True)
        subprocess.run(
            ["sh", "-ec", command],
            cwd=new,
            env={**os.environ, **who, **alone},
            check=True,
            capture_output=True,
        )
        before, after = files_of(old), files_of(new)
        effects = [
            Effect(
                path=path,
                kind="created" if path not in before else "changed" if path in after else "deleted",
                before="1" if path in before else None,
                after="2" if path in after else None,
            )
            for path in {*before, *after}
            if before.get(path) != after.get(path) and path.startswith(".git/")
        ]
        contents = FileVersions(before.get, after.get, GitPlaces(root=str(old)), read_objects)
        return assess_effects(Effects(effects=tuple(effects)), contents, GateSettings()).reasons

    return judge


def test_what_enters_through_the_index_and_refs_asks_like_files_and_everyday_work_does_not_G10(reasons):
    passed = [one for one in (*ENTERING, *LOSING) if not reasons(one)]
    assert not passed
    asked = [(one, found) for one in EVERYDAY if (found := reasons(one))]
    assert not asked
    assert [reasons(one) for one in OVERLOOKING] == [("overlooked",)] * 3


GAPS = {
    "an executable file that only a commit has": f"{RUNS}; git commit -qm x; git reset -q HEAD~1",
    "a protected file that is only removed in git": "git rm -q --cached .github/workflows/ci.yml",
    "an earlier commit as the last one fetched": "git rev-parse pr > .git/FETCH_HEAD",
    "an earlier commit in the log of a branch": "echo 0 $(git rev-parse pr) >> .git/logs/HEAD",
}


@pytest.mark.parametrize("command", GAPS.values(), ids=GAPS)
@pytest.mark.xfail(strict=True, reason="known gap: see docs/safety.md")
def test_known_gaps_G10(reasons, command):
    assert reasons(command)
