"""The log file in the state directory: pacing of requests, and internal errors (I8)."""

import logging
import os
from logging.handlers import RotatingFileHandler

from duckflow.cli.secrets import without_secrets
from duckflow.config.places import state_dir

NAME = "duckflow.log"
_BYTES, _FILES = 1_000_000, 3


class _Clean(logging.Formatter):
    """Removes secrets from lines, because a traceback may contain any text."""

    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


def open_log_file() -> None:
    """Send log records to the file; do nothing if it can't be opened."""
    place = state_dir() / NAME
    try:
        os.close(os.open(place, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        handler = RotatingFileHandler(
            place, maxBytes=_BYTES, backupCount=_FILES, encoding="utf-8", delay=True
        )
    except OSError:
        return
    handler.setFormatter(_Clean("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.raiseExceptions = False  # a line that can't be logged, on a full disk, is not worth a traceback
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("duckflow").setLevel(logging.INFO)
