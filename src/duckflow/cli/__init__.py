"""Flags to settings to app. Nothing heavy is imported before a command needs it."""

import os
import sys
from typing import NoReturn


def _say_version() -> int:
    from duckflow import __version__  # noqa: PLC0415 - as below

    sys.stdout.write(f"{__version__}\n")
    return 0


def main() -> NoReturn:
    """Entry point. The conversation does not wait for what only the other commands need."""
    if sys.argv[1:] == ["--version"]:
        sys.exit(_say_version())
    from duckflow.cli.chat.quick_start import quick_start  # noqa: PLC0415 - the package itself imports nothing

    start = quick_start(sys.argv[1:])
    if start is None:
        from duckflow.cli.main import main as run_command  # noqa: PLC0415 - as above

        run_command()
    from duckflow.cli.chat.prompt_first import converse  # noqa: PLC0415 - as above
    from duckflow.cli.exit import run_to_end  # noqa: PLC0415 - as above
    from duckflow.config.startup_language import configured_language  # noqa: PLC0415 - as above
    from duckflow.i18n.catalogue import detect, set_language  # noqa: PLC0415 - as above

    set_language(detect(configured_language(), os.environ))
    run_to_end(lambda: converse(start))
