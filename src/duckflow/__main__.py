"""`python -m duckflow`, which imports nothing from the current folder."""

import sys
from pathlib import Path

# Python puts the current folder first, and that may be an untrusted project.
if Path(sys.path[0]).resolve() == Path.cwd() and not Path(__file__).is_relative_to(Path.cwd()):
    del sys.path[0]

from duckflow.cli import main

main()
