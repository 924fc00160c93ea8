"""What is asked of a language model and what comes back, whoever provides it."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, Protocol, get_args

from pydantic import Field, JsonValue

from duckflow.domain.frozen import Frozen

PICTURE_TOKENS = 1600
"""What a picture is counted as: both large wires scale one down to about this."""


class Picture(Frozen):
    """A picture as it was when it was mentioned. Its bytes are never kept: only a `ModelRequest` has them."""

    path: str
    media: str
    digest: str


Role = Literal["system", "user", "assistant"]
TierName = Literal["creative", "fast", "evaluator"]
StopReason = Literal["end", "length", "tool_calls", "refusal"]
Effort = Literal["low", "medium", "high"]
EffortChoice = Literal["auto", "low", "medium", "high"]
EFFORTS: tuple[EffortChoice, ...] = get_args(EffortChoice)
"""Levels a user can choose. On "auto" the pacemaker chooses for each call."""
JsonSchema = dict[str, Any]


class ToolCall(Frozen):
    """A complete native tool call. `arguments` is the JSON text the model wrote, `id` the provider's own."""

    name: str
    arguments: str
    id: str = ""


class Thought(Frozen):
    """One piece of a model's thinking, kept in the form its provider wants back (SPEC K6)."""

    model: str
    """Full name of the model that thought it. No other model is shown it."""
    text: str = ""
    """The readable part, if there is one."""
    data: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """The provider's own item, such as a signature or encrypted content. Only its client looks inside."""
    place: int = 0
    """Number of parts of the answer that came before it: the text is one part, each call another."""


class ChatMessage(Frozen):
    """One message of a prompt. `stable` marks the end of what the next prompt will repeat.

    An assistant message may hold calls. Their results are user messages whose `result_of` is the id of a
    call; they follow the calls directly, one for each call, in the same order.
    """

    role: Role
    text: str
    stable: bool = False
    pictures: tuple[Picture, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    thoughts: tuple[Thought, ...] = ()
    result_of: str = ""
    failed: bool = False
    """Whether a result tells of a failure, for providers that want to know."""


class NativeTool(Frozen):
    """An operation offered as the provider's own tool call (SPEC A8)."""

    name: str
    description: str
    parameters: JsonSchema


class ModelRequest(Frozen):
    """One call. `answer_schema` binds the answer where the model can be bound; others may ignore it."""

    output: str
    messages: tuple[ChatMessage, ...]
    answer_schema: JsonSchema | None = None
    tools: tuple[NativeTool, ...] = ()
    stop: tuple[str, ...] = ()
    """Texts at which a model that can be bound stops; it also goes on from a last assistant message."""
    max_tokens: int = 4096
    extra_tokens: int = 0
    """Tokens on top of `max_tokens` after an answer was cut; `llm.max_tokens` does not limit them."""
    temperature: float | None = None
    seed: int | None = None
    """Where to draw from, at a temperature above 0; providers that know no seed may ignore it."""
    time_limit_s: float = 300.0
    effort: Effort | None = None
    """How much to think, for models that can be told; None leaves it to the provider."""
    window: int | None = None
    """The model's window as it is known by now, which an error may have told since the client was opened."""
    cache_key: str = ""
    """Same for all prompts with the same beginning, so that a provider can route them to the same cache."""
    picture_data: Mapping[str, str] = Field(default_factory=dict[str, str], repr=False)
    """The pictures of the messages that are shown, by digest, in Base64."""


WindowSource = Literal["setting", "learned", "server", "name", "usual", "guess"]
"""Origin of a window's size: `llm.window`, an error of the provider, the server's own word, the model's name,
the usual size for such models, or a guess."""


class ModelTraits(Frozen):
    """What the prompts need to know of a model before they ask it."""

    name: str
    window: int = 32_768
    window_from: WindowSource = "name"
    token_scale: float = 1.0
    """The provider's tokens for each one that we estimate, once an error has told."""
    small: bool = False
    native_tools: bool = False
    sees: bool = False
    """Whether it can be shown pictures."""


class Usage(Frozen):
    """Tokens of one call. Of the input, `cached_tokens` were read from a cache and `cache_written_tokens` put
    into it. `thinking_tokens` are part of the output."""

    input_tokens: int = 0
    cached_tokens: int = 0
    cache_written_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_written_tokens=self.cache_written_tokens + other.cache_written_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            thinking_tokens=self.thinking_tokens + other.thinking_tokens,
        )


class TextPiece(Frozen):
    """The next characters of the answer."""

    text: str


class ThinkingPiece(Frozen):
    """The next characters of the model's readable thinking, to be shown while it thinks."""

    text: str


class Retrying(Frozen):
    """What was streamed so far is void: the call starts again after `wait_s`."""

    reason: str
    wait_s: float


class StreamEnd(Frozen):
    """The end of a stream. A stream that ends without it was cut off."""

    stop: StopReason = "end"
    usage: Usage = Usage.model_construct()


ModelPiece = TextPiece | ThinkingPiece | Thought | ToolCall | Retrying | StreamEnd


class ModelClient(Protocol):
    """One language model. Raises `ProviderError` (or `Unavailable`, worth a retry) and nothing else."""

    @property
    def traits(self) -> ModelTraits:
        """What the prompts need to know of it."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        """The answer, piece by piece, ending with `StreamEnd`. Closing the iterator stops the model."""
        ...

    async def aclose(self) -> None:
        """Give back connections, threads and memory."""
        ...


class PromptUse(Frozen):
    """What a prompt takes of a model's window, by part, and how much was left out of it, by kind."""

    model: str
    window: int
    window_from: WindowSource = "name"
    tokens: dict[str, int]
    left_out: dict[str, int] = Field(default_factory=dict[str, int])
    dropped: tuple[str, ...] = ()
    """The results among it, by id and file."""
    recap: str = ""
    """What the model is told in its place."""
