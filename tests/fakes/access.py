"""Access to a folder for tools that are called by themselves: any change is let through, none is kept."""

from pathlib import Path
from typing import cast

from duckflow.safety.files.access import Access, Permit
from duckflow.safety.files.workspace import Workspace
from duckflow.store.kept_files import ChangeOwner, KeptFiles


class NothingKept:
    """Stands in for what files were before."""

    def keep(self, owner, changes, contents):
        pass

    def output(self, session_id, evidence_id):
        return None


def access_to(where: Path | Workspace, permit: Permit | None = None) -> Access:
    workspace = where if isinstance(where, Workspace) else Workspace(where)
    return Access(workspace, cast("KeptFiles", NothingKept()), ChangeOwner("s", "r", "a1"), permit)
