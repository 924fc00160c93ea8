"""Answers of the user that outlive a session, in a JSON file in the user's state folder."""

import json
from typing import cast

from duckflow.config.places import state_dir
from duckflow.config.toml_file import save_text
from duckflow.domain.errors import UserError


class SavedAnswers:
    """Texts by name in one file. An unreadable file counts as empty, and the user is asked again."""

    def __init__(self, name: str) -> None:
        self._name = name

    def load(self) -> dict[str, str]:
        """Load all answers."""
        try:
            found = json.loads((state_dir() / self._name).read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(found, dict):
            return {}
        pairs = cast("dict[object, object]", found).items()
        return {name: value for name, value in pairs if isinstance(name, str) and isinstance(value, str)}

    def save(self, known: dict[str, str]) -> None:
        """Store all answers durably."""
        place = state_dir() / self._name
        try:
            save_text(place, json.dumps(known, ensure_ascii=False, indent=1, sort_keys=True))
        except OSError as exc:
            raise UserError("places.cannot_create", path=place, reason=exc.strerror or exc) from exc
