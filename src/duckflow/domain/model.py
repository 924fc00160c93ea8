"""Requests to a language model and its answers, in the same form for all providers."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, Protocol, get_args

from pydantic import Field, JsonValue

from duckflow.domain.frozen import Frozen

PICTURE_TOKENS = 1600
"""Tokens to count for a picture. Both large providers scale pictures down to about this size."""


class Picture(Frozen):
    """A picture as it was when mentioned or pasted. No event has its bytes, only a `ModelRequest` has.

    `path` is the file, or the name of a pasted picture, whose bytes are in the database of kept files.
    """

    path: str
    media: str
    digest: str


Role = Literal["system", "user", "assistant"]
TierName = Literal["creative", "fast", "evaluator"]
StopReason = Literal["end", "length", "refusal"]
Effort = Literal["low", "medium", "high"]
EffortChoice = Literal["auto", "low", "medium", "high"]
EFFORTS: tuple[EffortChoice, ...] = get_args(EffortChoice)
"""Levels that a user can choose. With "auto", the pacemaker chooses for each call."""
JsonSchema = dict[str, Any]


class ToolCall(Frozen):
    """A complete native tool call. `arguments` is the model's JSON text, `id` comes from the provider."""

    name: str
    arguments: str
    id: str = ""


class Thought(Frozen):
    """One piece of a model's thinking, in the form in which its provider expects it back (K6)."""

    model: str
    """Full name of the model that produced the thought. It is never sent to another model."""
    text: str = ""
    """Readable part; may be empty."""
    data: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """Data in the provider's own format, such as a signature. Only that provider's client reads it."""
    place: int = 0
    """Number of parts of the answer before this one. The text is one part, and so is each tool call."""


class ChatMessage(Frozen):
    """One message of a prompt. `stable` marks the end of the part that the next prompt repeats unchanged.

    The results of an assistant's tool calls follow directly as user messages, one per call in the same order.
    `result_of` is the id of the call.
    """

    role: Role
    text: str
    stable: bool = False
    pictures: tuple[Picture, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    thoughts: tuple[Thought, ...] = ()
    result_of: str = ""
    failed: bool = False
    """True if the result reports a failure; some providers need to know."""


class NativeTool(Frozen):
    """An operation of Duckflow, offered as a native tool of the provider (A8)."""

    name: str
    description: str
    parameters: JsonSchema


class ModelRequest(Frozen):
    """One model call. `answer_schema` restricts the answer, if the model supports that."""

    output: str
    messages: tuple[ChatMessage, ...]
    answer_schema: JsonSchema | None = None
    tools: tuple[NativeTool, ...] = ()
    stop: tuple[str, ...] = ()
    """Texts at which a model with constrained output stops. It also continues a last assistant message."""
    max_tokens: int = 4096
    extra_tokens: int = 0
    """Tokens added to `max_tokens` after an answer was cut off, even beyond the setting `llm.max_tokens`."""
    temperature: float | None = None
    seed: int | None = None
    """Random seed at a temperature above 0; providers without seeds may ignore it."""
    time_limit_s: float = 300.0
    effort: Effort | None = None
    """Thinking effort, for models that accept one; None leaves it to the provider."""
    window: int | None = None
    """Size of the context window in tokens, possibly learned from an error after the client was opened."""
    cache_key: str = ""
    """Same for prompts that begin alike, so that the provider can use one cache for them."""
    picture_data: Mapping[str, str] = Field(default_factory=dict[str, str], repr=False)
    """Data of the pictures in Base64, by the hash of each picture."""


WindowSource = Literal["setting", "learned", "server", "name", "usual", "guess"]
"""Origin of a window's size: the setting `llm.window`, an error of the provider, the server's own report, the
model's name, the usual size for such models, or a guess."""


class ModelTraits(Frozen):
    """Properties of a model that affect its prompts."""

    name: str
    window: int = 32_768
    window_from: WindowSource = "name"
    token_scale: float = 1.0
    """Factor from our estimate of tokens to the provider's count, learned from an error."""
    small: bool = False
    native_tools: bool = False
    sees: bool = False
    """True if the model accepts pictures."""


class Usage(Frozen):
    """Tokens of one call. The input includes both cache counts, and the output includes thinking."""

    input_tokens: int = 0
    cached_tokens: int = 0
    cache_written_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{name: count + getattr(other, name) for name, count in self})


class TextPiece(Frozen):
    """The next characters of the answer."""

    text: str


class ThinkingPiece(Frozen):
    """The next characters of the model's readable thinking, shown while it thinks."""

    text: str


class CallPiece(Frozen):
    """Size in bytes of the next part of a call's arguments; the whole call follows."""

    size: int


class Retrying(Frozen):
    """The pieces so far are invalid: the call starts again after `wait_s` seconds."""

    reason: str
    wait_s: float


class StreamEnd(Frozen):
    """End of a stream. A stream without it was cut off."""

    stop: StopReason = "end"
    usage: Usage = Usage.model_construct()


ModelPiece = TextPiece | ThinkingPiece | Thought | CallPiece | ToolCall | Retrying | StreamEnd


class ModelClient(Protocol):
    """One language model. Raises only `ProviderError` (or its subclass `Unavailable`, worth a retry)."""

    @property
    def traits(self) -> ModelTraits:
        """Properties of the model that prompts depend on."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        """Stream the answer piece by piece, ending with `StreamEnd`. Closing the iterator stops the model."""
        ...

    async def aclose(self) -> None:
        """Release connections, threads and memory."""
        ...


class PromptUse(Frozen):
    """Size of a prompt: tokens of each part, and for each kind of item how many were left out."""

    model: str
    window: int
    window_from: WindowSource = "name"
    tokens: dict[str, int]
    left_out: dict[str, int] = Field(default_factory=dict[str, int])
    dropped: tuple[str, ...] = ()
    """Results that were left out, each by evidence id and file."""
    rules: tuple[str, ...] = ()
    """Names of the rules files in the prompt."""
    recap: str = ""
    """Summary that the model sees in place of the parts that were left out."""
