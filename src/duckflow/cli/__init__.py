"""Flags to settings to app. Nothing heavy is imported before a command needs it."""

import os
import sys
from typing import NoReturn


def _say_version() -> int:
    from duckflow import __version__  # noqa: PLC0415 - as below

    sys.stdout.write(f"{__version__}\n")
    return 0


def main() -> NoReturn:
    """Entry point. The conversation loads nothing that only other commands need."""
    if sys.argv[1:] == ["--version"]:
        sys.exit(_say_version())
    from duckflow.cli.chat.options import read_options  # noqa: PLC0415 - the package itself imports nothing

    options = read_options(sys.argv[1:])
    if options is None:
        from duckflow.cli.main import main as run_command  # noqa: PLC0415 - as above

        run_command()
    from duckflow.cli.chat.launch import launch  # noqa: PLC0415 - as above
    from duckflow.cli.exit import run_to_end  # noqa: PLC0415 - as above
    from duckflow.config.startup_language import configured_language  # noqa: PLC0415 - as above
    from duckflow.i18n.catalogue import detect, set_language  # noqa: PLC0415 - as above

    set_language(detect(configured_language(), os.environ))
    run_to_end(lambda: launch(options))
