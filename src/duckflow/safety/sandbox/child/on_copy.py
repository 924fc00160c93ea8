"""Runs a program of Duckflow's own where the workspace is replaced by its copy: `ORDER ARGUMENTS`.

ORDER is a JSON object with the `copies` to mount, as an order for the launcher has them. ARGUMENTS are those
of Python. The program ends with the process that started this one. Standard library only.
"""

import json
import os
import sys

from duckflow.safety.sandbox.child.overlay import enter_copies
from duckflow.safety.syscalls import die_with_parent


def main() -> None:
    """Mount the copies, and become the program."""
    parent = os.getppid()
    copies = json.loads(sys.argv[1])["copies"]
    enter_copies(copies)
    die_with_parent(parent)  # the kernel resets this when the user id changes
    os.chdir(copies[0]["lower"])
    os.execv(sys.executable, [sys.executable, "-P", *sys.argv[2:]])  # noqa: S606 - this is its purpose


if __name__ == "__main__":
    main()
