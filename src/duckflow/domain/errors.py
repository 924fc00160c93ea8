"""Errors, split by who reads them.

    DuckflowError
    ├── ToolError            read by the model: plain English it can act on
    │   └── Refused          policy said no
    │       └── SaidNo       the user said no
    └── UserError            read by the user: a catalogue key and its values; says what to do
        ├── UsageError       wrong arguments or configuration                  (exit code 2)
        └── ProviderError    no usable answer from a model                     (exit code 4)
            ├── Unavailable       for now: busy, broken, timed out, cut off    (retry)
            ├── ToolsUnsupported  the model takes no native tool calls         (retry without them)
            ├── PromptTooLong     the prompt does not fit the model's window   (retry with less)
            └── BadAnswer         the answer was unusable, also after repairs

Any other exception is a fault of Duckflow and may crash it; events that were stored stay stored.
"""

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from duckflow.domain.model import Usage


class DuckflowError(Exception):
    """Base of all errors raised on purpose."""


class ToolError(DuckflowError):
    """A tool could not do what was asked; the message becomes an observation for the model.

    `key` names the reason in the catalogue, for the user; it is empty for rare errors.
    """

    def __init__(self, message: str = "", key: str = "", **values: str | int) -> None:
        super().__init__(message)
        self.key = key
        self.values = values

    def reworded(self, message: str) -> "ToolError":
        """Return the error with another message for the model and the same reason for the user."""
        return ToolError(message, self.key, **self.values)


class Refused(ToolError):
    """The policy, a hook or the user did not permit the action."""


class SaidNo(Refused):
    """The user said no: to this action, or `before` to the same draft."""

    def __init__(self, message: str, *, before: bool = False) -> None:
        super().__init__(message)
        self.before = before


class Outdated(SaidNo):
    """The user said something before the action began, so the model decides again (C6)."""


class UserError(DuckflowError):
    """An error the user can fix. `key` names a catalogue entry, `values` fill its slots.

    `str(error)` is the sentence in the user's language.
    """

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(key, values)
        self.key = key
        self.values = values

    def __str__(self) -> str:
        from duckflow.i18n.catalogue import text  # noqa: PLC0415 - the catalogue is above this layer

        return text(self.key, **self.values)


class UsageError(UserError):
    """Wrong arguments or configuration."""


class ProviderError(UserError):
    """The model gave no usable answer. `usage` counts the tokens of the failed attempts."""

    usage: "Usage | None" = None

    def with_usage(self, usage: "Usage") -> Self:
        """Add the tokens of failed attempts."""
        self.usage = usage + self.usage if self.usage else usage
        return self


class Unavailable(ProviderError):
    """The provider can't answer right now; the same call may succeed later."""

    def __init__(self, key: str, *, retry_after_s: float | None = None, **values: object) -> None:
        super().__init__(key, **values)
        self.retry_after_s = retry_after_s


class ToolsUnsupported(ProviderError):
    """The server or its model takes no native tool calls; asking in plain text may work."""


class PromptTooLong(ProviderError):
    """The prompt exceeds the model's window; `asked` and `window` are their sizes in tokens, if known."""

    def __init__(
        self, key: str, *, window: int | None = None, asked: int | None = None, **values: object
    ) -> None:
        super().__init__(key, **values)
        self.window = window
        self.asked = asked


class BadAnswer(ProviderError):
    """The model's answer could not be used, even after repairs."""
