"""Convert requests to the embedded runtime's format (mostly OpenAI's), and its errors to ours."""

from typing import Any, cast

from duckflow.domain.errors import ProviderError
from duckflow.domain.model import JsonSchema, ModelRequest
from duckflow.domain.text import cut
from duckflow.llm.wire.openai import turns

SCHEMA = "duckflow_schema"
"""Field of the body that holds the answer's schema; the worker converts it to a grammar."""

_LOAD_FAILURES = (
    ("not within the file bounds", "embedded.cut_file"),
    ("magic", "embedded.not_gguf"),
    ("failed to allocate", "embedded.no_memory"),
    ("insufficient memory", "embedded.no_memory"),
    ("bad_alloc", "embedded.no_memory"),
)
"""Output of the runtime when it can't load a file, in search order, with the key of our error."""


def completion(request: ModelRequest) -> dict[str, Any]:
    """Return the body of a chat completion."""
    body: dict[str, Any] = {
        "messages": turns(request),
        "temperature": request.temperature or 0.0,
        "max_tokens": request.max_tokens,
        "cache_prompt": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        # Sends a chunk for each batch of the prompt, to show progress and to stop there.
        "return_progress": True,
    }
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    if request.answer_schema is not None:
        body[SCHEMA] = loosen(request.answer_schema)
    return body


def loosen(schema: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """Return the schema without limits on string length, which would make a huge and slow grammar."""
    if isinstance(schema, list):
        return [loosen(item) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    # A property that happens to be called minLength has a schema as its value, not a number.
    return {
        name: loosen(item)
        for name, item in cast("JsonSchema", schema).items()
        if not (name in ("minLength", "maxLength") and isinstance(item, int))
    }


def refusal(error: dict[str, Any]) -> ProviderError:
    """Return our error for a request that the runtime refused."""
    if error.get("type") == "exceed_context_size_error":
        tokens, window = error.get("n_prompt_tokens", 0), error.get("n_ctx", 0)
        return ProviderError("embedded.prompt_too_long", tokens=tokens, window=window)
    return ProviderError("embedded.refused", detail=cut(str(error.get("message", error)), 300))


def load_failure(path: str, said: str, status: int, printed: str) -> ProviderError:
    """Return our error for a file that failed to load, by the process's messages, status and output."""
    if status == -9:  # SIGKILL during loading comes from the system when memory is short
        return ProviderError("embedded.no_memory", path=path)
    for words, key in _LOAD_FAILURES:
        if words in printed or words in said:
            return ProviderError(key, path=path)
    reason = said or printed.strip().rpartition("\n")[2] or f"exit status {status}"
    return ProviderError("embedded.load_failed", path=path, reason=cut(reason, 300))
