"""End of a command: an error that the user can fix becomes one sentence and an exit code."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from duckflow.domain.errors import ProviderError, UsageError, UserError
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import OutputFailed, echo


def run_to_end(command: Callable[[], object]) -> NoReturn:
    """Run a command and leave with its exit code."""
    try:
        command()
    except SystemExit:
        _give_up_output()
        raise
    except UserError as error:
        _leave_with(error)
    except OutputFailed as failed:
        _leave_with(UserError("run.output_failed", reason=failed))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone; a second failure at exit would only print noise.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    sys.exit(0)


def _leave_with(error: UserError) -> NoReturn:
    from duckflow.cli.secrets import without_secrets  # noqa: PLC0415 - only when it is needed

    # An address, or the words of a provider, may contain a key.
    message = without_secrets(text(error.key, **error.values))
    with suppress(OSError):  # if nothing can be written, the exit code still says it
        echo(text("error.line", message=message), sys.stderr)
    _give_up_output()
    if isinstance(error, UsageError):
        sys.exit(2)
    sys.exit(4 if isinstance(error, ProviderError) else 1)


def _give_up_output() -> None:
    """Discard output that can't be written, so that it does not change the exit code at the very end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
