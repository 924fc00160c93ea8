"""`python -m duckflow`: what lies in the current folder is not imported in place of a library."""

import sys
from pathlib import Path

# Python puts the current folder first, and that may be a project nobody has trusted.
if Path(sys.path[0]).resolve() == Path.cwd() and not Path(__file__).is_relative_to(Path.cwd()):
    del sys.path[0]

from duckflow.cli import main

main()
