"""Contents of the workspace's files before and after a change, for the rules that judge it (G9, G10)."""

from collections.abc import Mapping

from duckflow.domain.errors import ToolError
from duckflow.domain.files.effects import Effect, Effects
from duckflow.safety.files.atomic import LARGEST
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.effects import FileVersions, git_findings
from duckflow.safety.policy.git_config import GitPlaces, UnreadableFile
from duckflow.safety.sandbox.copy.copies import WorkspaceCopy
from duckflow.safety.sandbox.view.git_settings import read_objects
from duckflow.tools.catalogue import Proposal


def read_whole(workspace: Workspace, path: str) -> bytes | None:
    """Return the content of a path, None if nothing is there. Raise UnreadableFile if it can't be read."""
    try:
        found = workspace.paths.now(path)
    except ToolError as exc:
        raise UnreadableFile(path) from exc
    return found.data if found else None


def of_command(
    workspace: Workspace, copy: WorkspaceCopy, effects: Effects, places: GitPlaces
) -> FileVersions:
    """Return the contents before and after a command that ran on a copy."""
    gone = {one.moved_from or one.path for one in effects.effects if one.kind in ("deleted", "moved")}
    changed = {one.path: one for one in effects.effects if one.kind != "deleted"}

    def before(path: str) -> bytes | None:
        return read_whole(workspace, path)

    def after(path: str) -> bytes | None:
        if path in changed:
            return _in_copy(copy, changed[path])
        return None if path in gone else before(path)

    known = places._replace(git_outside=copy.about.git_directory)
    return FileVersions(before, after, known, read_objects)


def _in_copy(copy: WorkspaceCopy, effect: Effect) -> bytes | None:
    if effect.type == "folder":
        return None
    content = copy.content(effect.path, LARGEST)
    if content is None:
        raise UnreadableFile(effect.path)
    return content


def file_tool_findings(
    workspace: Workspace, before: Mapping[str, str | None], proposal: Proposal, places: GitPlaces
) -> tuple[str, ...]:
    """Return the findings about git on a file tool that changes the paths in `before` (path: SHA-256)."""
    new: dict[str, bytes | None] = {}
    paths = list(before)
    written = {one.path: one.data for one in proposal.writes}
    moves = proposal.write is None and not written and not proposal.undoes and len(paths) == 2
    moved_from = paths[0] if moves else ""
    for path in paths[bool(moved_from) :]:
        for name in dict.fromkeys((path, workspace.real(path))):
            if moved_from:
                new[name] = read_whole(workspace, moved_from)
            else:
                new[name] = proposal.write.data if proposal.write else written.get(path)
    if moved_from:
        new[moved_from] = None
    changes = [
        Effect(
            path=name,
            kind="moved" if moved_from and content is not None else "changed",
            before="1",
            after="2",
        )
        for name, content in new.items()
    ]

    def before_it(path: str) -> bytes | None:
        return read_whole(workspace, path)

    def after_it(path: str) -> bytes | None:
        return new[path] if path in new else read_whole(workspace, path)

    contents = FileVersions(before_it, after_it, places, read_objects)
    return tuple(dict.fromkeys(git_findings(changes, contents)))
