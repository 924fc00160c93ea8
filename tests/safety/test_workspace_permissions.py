"""A refusal of the operating system becomes a clear sentence, and changes nothing."""

import os
import subprocess
import sys

import pytest

NOBODY = 65534

SCRIPT = """
import os, sys
from pathlib import Path
os.setgid({nobody}); os.setuid({nobody})
from duckflow.domain.errors import DuckflowError
from duckflow.safety.files.workspace import Workspace
def attempt(name, call):
    try:
        call()
    except DuckflowError as error:
        print(name, type(error).__name__, error)
    else:
        print(name, "passed")
workspace = Workspace(Path(sys.argv[1]))
attempt("read", lambda: workspace.read_text("mine"))
attempt("closed", lambda: workspace.read_text("closed"))
attempt("write", lambda: workspace.write_text("new", "x"))
attempt("change", lambda: workspace.write_text("mine", "x"))
attempt("folder", lambda: workspace.write_text("deep/new", "x"))
attempt("delete", lambda: workspace.delete("mine"))
attempt("move", lambda: workspace.move("mine", "other"))
attempt("inside", lambda: workspace.list("secret"))
attempt("tree", lambda: workspace.list(depth=3))
attempt("root", lambda: Workspace(Path(sys.argv[1]) / "secret"))
"""


LOADED = """
import duckflow.safety.files.workspace
from duckflow.safety.policy.protected import protection_of
protection_of("a")  # reads its table
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_read_only_folder_and_closed_files_are_said_clearly(disk_path):
    disk_path.chmod(0o755)
    (disk_path / "mine").write_text("text")
    (disk_path / "closed").write_text("text")
    (disk_path / "closed").chmod(0o600)
    (disk_path / "secret").mkdir(mode=0o700)
    source = SCRIPT.format(nobody=NOBODY)
    # The package is imported before the user changes: another user may not be able to read it.
    done = subprocess.run(
        [sys.executable, "-c", LOADED + source, disk_path],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "read passed",
        "closed ToolError closed: may not be accessed: permission denied by the operating system.",
        "write ToolError new: may not be accessed: permission denied by the operating system.",
        "change ToolError mine: may not be accessed: permission denied by the operating system.",
        "folder ToolError deep/new: may not be accessed: permission denied by the operating system.",
        "delete ToolError mine: may not be accessed: permission denied by the operating system.",
        "move ToolError other: may not be accessed: permission denied by the operating system.",
        "inside ToolError secret: may not be accessed: permission denied by the operating system.",
        "tree passed",
        f"root UsageError The folder {disk_path}/secret can't be opened. Check its permissions, "
        "or name another with --workspace.",
    ]
    assert sorted(path.name for path in disk_path.iterdir()) == ["closed", "mine", "secret"]


IN_A_NAMESPACE = """
import subprocess, sys
from pathlib import Path
place = Path(sys.argv[1])
for name in ("upper", "work"):
    (place / name).mkdir()
layers = f"lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work"
mount = ["mount", "-t", "overlay", "overlay", "-o", layers, str(place / "lower")]
if subprocess.run(mount, capture_output=True).returncode:
    sys.exit("no overlay here")
from duckflow.safety.files.workspace import Workspace
Workspace(place / "lower").write_text("shared", "new")
print((place / "lower/shared").read_text())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another group")
def test_on_a_copy_a_file_of_another_group_can_be_replaced(disk_path):
    """O2: the user namespace of a copy does not know the group, so the old file can't be moved away."""
    disk_path.chmod(0o755)
    (disk_path / "lower").mkdir()
    (disk_path / "lower/shared").write_text("old")
    os.chown(disk_path / "lower/shared", -1, 54_321)
    namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    done = subprocess.run(
        [*namespace, sys.executable, "-c", LOADED + IN_A_NAMESPACE, disk_path],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stderr.strip() == "no overlay here":
        pytest.skip(done.stderr.strip())
    assert (done.stdout.strip(), done.stderr) == ("new", "")
