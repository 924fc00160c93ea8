"""The program's start: it reads flags and runs a command. Slow modules are imported only when needed."""

import gc
import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from types import ModuleType
from typing import NoReturn

from duckflow.config.version import __version__

_BETWEEN_COLLECTIONS = 100_000
"""Number of new objects between two garbage collections; Python's default is 700. Nearly all objects
made at the start stay, and looking for garbage among them took a tenth of the time to start."""

_INTERRUPTED = 130


def _skip_foreign_plugins() -> None:
    """Keep pydantic from looking for its plugins in the metadata of all installed packages.
    PYDANTIC_DISABLE_PLUGINS would save reading the metadata, but not importing the modules that read it."""
    nothing = ModuleType("pydantic.plugin._loader")
    nothing.__dict__["get_plugins"] = tuple
    sys.modules.setdefault(nothing.__name__, nothing)


def _mend_streams() -> None:
    """Reopen standard streams that the parent process closed, on /dev/null; replace what can't be encoded.

    With PYTHONUNBUFFERED, Python loses the rest of a line if a signal arrives while a pipe is full, so the
    streams get a buffer.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - to the end; pathlib is not loaded yet
    for name in ("stdout", "stderr"):
        stream: object = getattr(sys, name)
        if not isinstance(stream, TextIOWrapper):
            continue
        stream.reconfigure(errors="replace")
        if stream.write_through and stream is getattr(sys, f"__{name}__"):
            buffer = BufferedWriter(FileIO(stream.fileno(), "w", closefd=False))
            whole = TextIOWrapper(buffer, stream.encoding, errors="replace", line_buffering=True)
            setattr(sys, name, whole)


def main() -> NoReturn:
    """Entry point. Ctrl-C ends it silently, also while modules load."""
    _mend_streams()
    try:
        _start()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _start() -> NoReturn:
    """Start the conversation or `run` directly, without the modules of other commands."""
    gc.set_threshold(_BETWEEN_COLLECTIONS)
    _skip_foreign_plugins()
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"{__version__}\n")
        sys.exit(0)
    from duckflow.cli import plain_flags  # noqa: PLC0415 - imports nothing

    sys.argv[1:] = plain_flags.with_usual_words(sys.argv[1:])
    options = plain_flags.read_options(sys.argv[1:])
    run_options = plain_flags.read_run_flags(sys.argv[1:])
    from duckflow.cli.exit import run_to_end  # noqa: PLC0415 - as above
    from duckflow.config.startup_language import configured_language  # noqa: PLC0415 - as above
    from duckflow.i18n.catalogue import detect, set_language  # noqa: PLC0415 - as above

    set_language(detect(configured_language(), os.environ))
    if run_options is not None:
        from duckflow.cli.reports.task import run_with  # noqa: PLC0415 - as above

        run_to_end(lambda: sys.exit(run_with(run_options)))
    if options is not None:
        from duckflow.cli.chat.launch import launch  # noqa: PLC0415 - as above

        run_to_end(lambda: launch(options))
    from duckflow.cli.main import main as run_command  # noqa: PLC0415 - as above

    run_command()
