"""Files that changed objects, refs and indexes of git newly contain (G10).

Git writes them into the work tree at a later checkout, outside the sandbox. So they are judged like files.
"""

import hashlib
import posixpath
import re
import stat
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple, Protocol

from duckflow.domain.files.effects import Effect
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.paths import fold
from duckflow.safety.policy.git_config import GitPlaces, ReadFile, UnreadableFile, read_settings
from duckflow.safety.policy.git_index import read_index, watched_files
from duckflow.safety.policy.git_internals import GIT, folders_above, is_head

_INSIDE = (
    r"(?:objects/(?P<object>[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62}))"
    r"|(?P<stored>objects/(?:pack/.*\.(?:pack|idx)|pack/multi-pack-index.*|info/commit-graph.*))"
    r"|(?P<ref>refs/.+|HEAD|ORIG_HEAD|MERGE_AUTOSTASH|BISECT_START|sequencer/head"
    r"|rebase-(?:merge|apply)/(?:orig-head|onto|autostash))"
    r"|(?P<todo>(?:rebase-merge|rebase-apply|sequencer)/[^/]*todo[^/]*)"
    r"|(?P<packed>packed-refs)|(?P<index>index|sharedindex\.[0-9a-f]+))"
)
_PLACE = lazy_regex(
    rf"(?P<place>(?:.*/)?\.git(?:/modules/.+?)?)(?P<own>/worktrees/[^/]+)?/{_INSIDE}", re.IGNORECASE
)
_BARE = lazy_regex(_INSIDE, re.IGNORECASE)
_PICKED = lazy_regex(rb"^\s*[a-z]+\s+(?:-[cC]\s+)?([0-9a-fA-F]{4,64})\b", re.MULTILINE)
_SYMBOLIC = lazy_regex(rb"ref:\s*(\S+)")
_ID = lazy_regex(rb"[0-9a-fA-F]{40,64}")
_PACKED = lazy_regex(rb"^([0-9a-f]{40,64}) (\S+)$", re.MULTILINE)
_COMMIT = lazy_regex(rb"tree ([0-9a-f]+)\n((?:parent [0-9a-f]+\n)*)author ")
_TAG = lazy_regex(rb"object ([0-9a-f]+)\n()type ")
_MASK = lazy_regex(rb"\n\n+")
_LARGEST, _LARGEST_SUM = 1 << 27, 1 << 30
_MOST = 200_000
_DEEPEST_REF = 5
_BISECTED = "/BISECT_START"

_SHORT = 4_096

GitObject = tuple[str, bytes]
"""Type and content of an object of git."""


class ReadObjects(Protocol):
    """Reads objects from a git directory outside the copy, by their ids, which may be short.

    Missing ones are left out.
    """

    def __call__(self, directory: str, ids: Collection[str]) -> Mapping[str, GitObject]: ...


def read_no_objects(directory: str, ids: Collection[str]) -> Mapping[str, GitObject]:  # noqa: ARG001
    """Return nothing: no git directory is known."""
    return {}


class GitContent(NamedTuple):
    """File that git would write at a checkout, by its path in the workspace."""

    path: str
    mode: int
    id: str


class GitContents:
    """Content that a command added to git, by the path of the git file that changed."""

    def __init__(
        self,
        effects: Iterable[Effect],
        before: ReadFile,
        after: ReadFile,
        places: GitPlaces,
        objects: ReadObjects,
    ) -> None:
        self.findings: dict[str, set[str]] = defaultdict(set)
        """Reasons that lie in a file of git itself."""
        self.contents: dict[str, list[GitContent]] = defaultdict(list)
        self._before, self._after = before, after
        self._repositories: dict[str, _Repository] = {}
        self._places: dict[str, str] = {}
        groups: dict[str, list[_ChangedPart]] = defaultdict(list)
        for path in (one for effect in effects for one in (effect.path, effect.moved_from) if one):
            try:
                part = _part_of(path, before)
            except UnreadableFile:
                self.findings[path].add("unseen")
                continue
            if part:
                groups[part.place].append(part)
                self._places[path] = part.place
        for place, changed in groups.items():
            try:
                self._repositories[place] = repository = _Repository(place, before, after, places, objects)
                self._judge(repository, changed)
            except UnreadableFile:
                for one in changed:
                    self.findings[one.path].add("unseen")

    def _judge(self, repository: "_Repository", changed: Collection["_ChangedPart"]) -> None:
        for path, _, _, kind, _ in changed:
            if kind in ("object", "stored") and self._after(path) is None:
                self.findings[path].update(
                    ("discards",) if "multi-" not in path and "graph" not in path else ()
                )
            elif kind == "stored":
                self.findings[path].add("unseen")
            elif kind == "object":
                self.findings[path].update(repository.add_object(path))
        lists = [one.path for one in changed if one.kind == "todo"]
        todo_steps = (step for path in lists for step in repository.todo_steps(path))
        for source, step in (*repository.commit_steps(), *repository.ref_steps(changed), *todo_steps):
            self._add(source, repository, step)
        indexes = {one.path: f"{one.path.rpartition('/')[0]}/index" for one in changed if one.kind == "index"}
        for source, index in indexes.items():
            if index == source or index not in indexes:
                self._add(source, repository, index.lstrip("/"))

    def _add(self, source: str, repository: "_Repository", wanted: "_TreeStep | str") -> None:
        try:
            found = repository.indexed(wanted) if isinstance(wanted, str) else repository.introduced([wanted])
            self.contents[source] += found
            if isinstance(wanted, str) and repository.overlooks(wanted):
                self.findings[source].add("overlooked")
        except UnreadableFile:
            self.findings[source].add("unseen")

    def is_known(self, source: str, one: GitContent) -> bool:
        """Return whether the file has this content in the work tree, or in the commit that is checked out."""
        repository = self._repository(source)
        for read in (self._before, self._after):
            with suppress(UnreadableFile):
                if repository.is_blob(one.id, read(one.path)):
                    return True
        with suppress(UnreadableFile):
            return repository.has(one, in_index="index" in source.rpartition("/")[2])
        return False

    def read(self, source: str, one: GitContent) -> bytes | None:
        """Return the content, None if it is not available."""
        with suppress(UnreadableFile):
            return self._repository(source).blob(one.id)
        return None

    def _repository(self, source: str) -> "_Repository":
        return self._repositories[self._places[source]]


def is_steering(path: str) -> bool:
    """Return whether git, or another file system, takes a path for one of `.git` or outside the folder."""
    names = path.replace("\\", "/").split("/")
    return any(name in ("", ".", "..") or GIT.fullmatch(fold(name)) for name in names)


class _ChangedPart(NamedTuple):
    path: str
    place: str
    """Git directory."""
    own: str
    """Folder of a work tree in there, with a slash before it."""
    kind: str
    name: str


def _part_of(path: str, before: ReadFile) -> _ChangedPart | None:
    """Return the part of a repository that a path is, None if it is none of those that steer a checkout."""
    if match := _PLACE.fullmatch(path):
        kind = match.lastgroup or ""
        return _ChangedPart(path, match["place"], match["own"] or "", kind, match[kind])
    for home in ("", *folders_above(path)):
        match = _BARE.fullmatch(path[len(home) :].lstrip("/"))
        if match and is_head(posixpath.join(home, "HEAD"), before):
            kind = match.lastgroup or ""
            return _ChangedPart(path, home, "", kind, match[kind])
    return None


class _TreeStep(NamedTuple):
    """Tree to compare with others: only what none of them contains is new."""

    path: str
    tree: str
    bases: tuple[str, ...]


class _Repository:
    def __init__(
        self, place: str, before: ReadFile, after: ReadFile, places: GitPlaces, objects: ReadObjects
    ) -> None:
        self._place = place
        self._before, self._after = before, after
        self._objects = objects
        self._directory = places.git_directory(place)
        settings = dict(read_settings(before(f"{place}/config".lstrip("/")) or b"") or ())
        self._algorithm = "sha256" if settings.get("extensions.objectformat") == "sha256" else "sha1"
        self._size = hashlib.new(self._algorithm).digest_size
        top = places.find(place, settings.get("core.worktree") or "..") if "/" in place else ""
        self._top = "" if is_steering(top) else top
        self._new: dict[str, str] = {}
        """Paths of new objects, by id."""
        self._known: dict[str, GitObject | None] = {}
        self._left = _LARGEST_SUM

    def add_object(self, path: str) -> Iterator[str]:
        """Add a changed object. Yield the reasons that lie in the object itself."""
        id_ = "".join(path.split("/")[-2:]).lower()
        packed = self._after(path)
        if packed is None:
            return
        try:
            kind, content = self._unpacked(id_, packed)
        except (UnreadableFile, zlib.error):
            yield "unseen"
            return
        self._new[id_] = path
        if kind != "blob" or len(content) <= _SHORT:
            self._known[id_] = kind, content
        if kind == "blob" and _MASK.fullmatch(content):
            yield "mask"
        if kind == "tree":
            with suppress(UnreadableFile):
                if not any(is_steering(name) or "/" in name for name in self._entries(id_)):
                    return
            yield "git_program"

    def _unpacked(self, id_: str, packed: bytes) -> GitObject:
        reader = zlib.decompressobj()
        data = reader.decompress(packed, min(_LARGEST, self._left))
        self._left = max(1, self._left - len(data))
        head, _, content = data.partition(b"\0")
        kind, _, size = head.partition(b" ")
        whole = reader.eof and kind in (b"blob", b"tree", b"commit", b"tag") and size == b"%d" % len(content)
        if not whole or hashlib.new(self._algorithm, data).hexdigest() != id_:
            raise UnreadableFile(id_)
        return kind.decode(), content

    def commit_steps(self) -> list[tuple[str, _TreeStep]]:
        """Return the new commits, each compared with its parents."""
        commits = [one for one in self._new if (self._known.get(one) or ("",))[0] == "commit"]
        return [(self._new[one], step) for one, step in self._with_parents(commits)]

    def todo_steps(self, path: str) -> list[tuple[str, _TreeStep]]:
        """Return the commits that a rebase will newly apply, each compared with its parents."""
        was, now = (_PICKED.findall(read(path) or b"") for read in (self._before, self._after))
        commits = [one.decode().lower() for one in dict.fromkeys(now) if one not in was]
        self._fetch(commits)
        commits = [one for one in commits if self._known[one]]
        return [(path, step) for _, step in self._with_parents(commits)]

    def _with_parents(self, commits: Iterable[str]) -> list[tuple[str, _TreeStep]]:
        named = {one: self._named(one) for one in commits}
        self._fetch(parent for _, *parents in named.values() for parent in parents)
        return [
            (one, _TreeStep(self._top, tree, self._trees(parents))) for one, (tree, *parents) in named.items()
        ]

    def ref_steps(self, changed: Iterable[_ChangedPart]) -> Iterator[tuple[str, _TreeStep]]:
        """Yield the changed refs, each compared with its earlier value or with HEAD."""
        sources = {f"{one.own}/{one.name}": one.path for one in changed if one.kind == "ref"}
        packed = next((one.path for one in changed if one.kind == "packed"), None)
        if packed:
            was, now = (_packed(read(packed)) for read in (self._before, self._after))
            sources |= {f"/{name}": packed for name in now if was.get(name) != now[name]} | sources
        for name, source in sources.items():
            if name.startswith("/refs/replace/"):
                raise UnreadableFile(source)  # would make git read other objects than these
            own = "/".join(name.split("/")[:3]) if name.startswith("/worktrees/") else ""
            new = self._value(name, self._after)
            if not new and name.endswith(_BISECTED) and self._after(source):
                raise UnreadableFile(source)  # an expression that only git understands
            old = self._value(name, self._before) or self._value(f"{own}/HEAD", self._before)
            if new and new != old:
                try:
                    yield source, _TreeStep(self._top, self._tree_of(new), self._trees((old,)))
                except UnreadableFile:
                    yield source, _TreeStep(self._top, new, ())  # is no tree: fails once it is read

    @cached_property
    def heads(self) -> tuple[str, str]:
        """Commits that are checked out before and after the command."""
        return self._value("/HEAD", self._before), self._value("/HEAD", self._after)

    def _value(self, name: str, read: ReadFile) -> str:
        """Return the id of the object that a ref points to, or "". The name begins with a slash."""
        for _ in range(_DEEPEST_REF):
            text = read(f"{self._place}{name}".lstrip("/"))
            if text is None:
                return _packed(read(f"{self._place}/packed-refs".lstrip("/"))).get(name[1:], "")
            if match := _SYMBOLIC.match(text):
                name = f"/{match[1].decode('utf-8', 'surrogateescape')}"
            elif found := _ID.match(text):
                return found[0].decode().lower()
            elif name.endswith(_BISECTED):  # names the branch to which `git bisect reset` returns
                name = f"/refs/heads/{text.decode('utf-8', 'surrogateescape').strip()}"
            else:
                return ""
        return ""

    def indexed(self, path: str) -> list[GitContent]:
        """Return what an index newly contains."""
        with suppress(UnreadableFile):
            was = read_index(path, self._before, self._algorithm)
            new = read_index(path, self._after, self._algorithm) - was
            files = [GitContent(self._join(self._top, one.path), *one[1:]) for one in new]
            folders = [one for one in files if stat.S_ISDIR(one.mode)]
            steps = [_TreeStep(one.path.rstrip("/"), one.id, ()) for one in folders]
            return [one for one in files if one not in folders] + self.introduced(steps)
        raise UnreadableFile(path)

    def overlooks(self, path: str) -> bool:
        """Return whether an index tells git to overlook changes of a file that it noticed before."""
        noticed = watched_files(path, self._before, self._algorithm)
        return not noticed.isdisjoint(watched_files(path, self._after, self._algorithm, watched=False))

    def introduced(self, steps: list[_TreeStep]) -> list[GitContent]:
        """Return the files in these trees that the trees they are compared with do not contain."""
        found: list[GitContent] = []
        while steps:
            self._fetch(tree for one in steps for tree in (one.tree, *one.bases))
            below: list[_TreeStep] = []
            for path, tree, bases in steps:
                known = [self._entries(base) for base in bases]
                for name, entry in self._entries(tree).items():
                    if any(one.get(name) == entry for one in known):
                        continue
                    mode, id_ = entry
                    inside = self._join(path, name)
                    if not stat.S_ISDIR(mode):
                        found.append(GitContent(inside, mode, id_))
                        continue
                    same = (one[name] for one in known if name in one)
                    folders = tuple(base for mode, base in same if stat.S_ISDIR(mode))
                    below.append(_TreeStep(inside, id_, folders))
            if len(found) + len(below) > _MOST:
                raise UnreadableFile(self._place)
            steps = list(dict.fromkeys(below))
        return found

    @staticmethod
    def _join(folder: str, name: str) -> str:
        return f"{folder}/{name}" if folder else name

    def is_blob(self, id_: str, content: bytes | None) -> bool:
        """Return whether a file has this content, with its line ends as they are or as git converts them."""
        forms = () if content is None else (content, content.replace(b"\r\n", b"\n"))
        return any(
            hashlib.new(self._algorithm, b"blob %d\0" % len(one) + one).hexdigest() == id_ for one in forms
        )

    def has(self, one: GitContent, *, in_index: bool) -> bool:
        """Return whether the commit that was checked out before, or for the index also after, has a file."""
        names = one.path[len(self._top) :].strip("/").split("/")
        for commit in self.heads[: 1 + in_index]:
            tree: str | None = self._tree_of(commit) if commit else None
            for name in names[:-1]:
                mode, id_ = self._entries(tree).get(name, (0, "")) if tree else (0, "")
                tree = id_ if stat.S_ISDIR(mode) else None
            if tree and self._entries(tree).get(names[-1]) == (one.mode, one.id):
                return True
        return False

    def blob(self, id_: str) -> bytes | None:
        """Return the content of a file."""
        if id_ in self._new:
            return self._unpacked(id_, self._after(self._new[id_]) or b"")[1]
        found = self._read(id_)
        return found[1] if found else None

    def _trees(self, commits: Iterable[str]) -> tuple[str, ...]:
        """Return the trees of those commits that exist."""
        found: list[str] = []
        for commit in filter(None, commits):
            with suppress(UnreadableFile):
                found.append(self._tree_of(commit))
        return tuple(found)

    def _tree_of(self, id_: str) -> str:
        for _ in range(_DEEPEST_REF):
            found = self._read(id_)
            if found is not None and found[0] == "tree":
                return id_
            if found is None or found[0] == "blob":
                break
            id_ = self._named(id_)[0]
        raise UnreadableFile(id_)

    def _named(self, id_: str) -> list[str]:
        """Return the ids that a commit or a tag names: first its tree or object, then its parents."""
        found = self._read(id_)
        pattern = _COMMIT if found and found[0] == "commit" else _TAG
        match = pattern.match(found[1]) if found else None
        if match is None:
            raise UnreadableFile(id_)
        return match[1].decode().split() + match[2].decode().split()[1::2]

    def _entries(self, tree: str) -> dict[str, tuple[int, str]]:
        found = self._read(tree)
        if found is None or found[0] != "tree":
            raise UnreadableFile(tree)
        content, at, entries = found[1], 0, dict[str, tuple[int, str]]()
        try:
            while at < len(content):
                space = content.index(b" ", at)
                end = content.index(b"\0", space) + 1
                name = content[space + 1 : end - 1].decode("utf-8", "surrogateescape")
                mode, at = int(content[at:space], 8), end + self._size
                known = len(entries)
                entries[name] = mode, content[end:at].hex()
                if len(entries) == known:
                    raise UnreadableFile(tree)
        except ValueError as exc:
            raise UnreadableFile(tree) from exc
        return entries

    def _read(self, id_: str) -> GitObject | None:
        self._fetch((id_,))
        return self._known[id_]

    def _fetch(self, ids: Iterable[str]) -> None:
        """Read objects that existed before the command, with one call for all of them."""
        missing = {one: None for one in ids if one not in self._known}
        if missing and self._directory:
            self._known |= self._objects(self._directory, missing)
        self._known = {**missing, **self._known}


def _packed(text: bytes | None) -> dict[str, str]:
    found = _PACKED.findall(text or b"")
    return {name.decode("utf-8", "surrogateescape"): id_.decode() for id_, name in found}
