"""Errors, split by who reads them.

    DuckflowError
    ├── ToolError            the model reads it: plain English it can act on
    │   └── Refused          policy or the user said no
    └── UserError            the user reads it: a catalogue key and its values; it says what to do
        ├── UsageError       arguments or configuration are wrong           (exit code 2)
        └── ProviderError    no usable answer can be had from a model       (exit code 4)
            ├── Unavailable       for now: busy, broken, timed out, cut off (worth another try)
            ├── ToolsUnsupported  it takes no native tool calls             (worth another try without)
            ├── PromptTooLong     the prompt does not fit the model's window (worth a shorter one)
            └── BadAnswer         it answered, and again when asked, what can't be used

Anything else is a fault of ours and is allowed to crash; what was stored stays stored.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckflow.domain.model import Usage


class DuckflowError(Exception):
    """Base of all errors raised on purpose."""


class ToolError(DuckflowError):
    """A tool could not do what was asked; becomes an observation for the model."""


class Refused(ToolError):
    """Policy or the user did not permit the action."""


class UserError(DuckflowError):
    """Something the user can mend. `key` names a catalogue entry, `values` fill its slots."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(key, values)
        self.key = key
        self.values = values

    def __str__(self) -> str:
        listed = ", ".join(f"{name}={value}" for name, value in self.values.items())
        return f"{self.key} ({listed})" if listed else self.key


class UsageError(UserError):
    """Wrong arguments or configuration."""


class ProviderError(UserError):
    """No usable answer can be had from the model. `usage` is what was spent before that was clear."""

    usage: "Usage | None" = None


class Unavailable(ProviderError):
    """The provider can't answer right now; the same call may succeed later."""

    def __init__(self, key: str, *, retry_after_s: float | None = None, **values: object) -> None:
        super().__init__(key, **values)
        self.retry_after_s = retry_after_s


class ToolsUnsupported(ProviderError):
    """The server, or its model, takes no native tool calls; the same question as text may be answered."""


class PromptTooLong(ProviderError):
    """The prompt does not fit the model's window.

    `window` is the size of the window and `asked` that of the prompt, in tokens, where the provider said so.
    """

    def __init__(
        self, key: str, *, window: int | None = None, asked: int | None = None, **values: object
    ) -> None:
        super().__init__(key, **values)
        self.window = window
        self.asked = asked


class BadAnswer(ProviderError):
    """The model's answer could not be used, and its repairs could not either."""
