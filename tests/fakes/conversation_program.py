"""`python -m duckflow`, but a question takes the keyboard after the quiet time that the test chose."""

import functools
import os

from duckflow.cli import main
from duckflow.cli.chat import launch

QUIET_S = "QUIET_S"
"""The variable that holds it."""

if __name__ == "__main__":
    launch.open_frontend = functools.partial(launch.open_frontend, quiet_s=float(os.environ[QUIET_S]))
    main()
