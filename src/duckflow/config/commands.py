"""The settings of shell commands: how long, how much, in which sandbox."""

from typing import Annotated, Literal

from pydantic import Field

from duckflow.domain.frozen import Frozen

SandboxChoice = Literal["auto", "bubblewrap", "landlock", "none"]


class ShellSettings(Frozen):
    """What a command may take, and how it is kept in."""

    sandbox: SandboxChoice = "auto"
    """What keeps commands in; `auto` takes the best that works here, `none` asks before every command."""

    network: bool = False
    """Let every command use the network, without a question."""

    timeout_s: Annotated[int, Field(ge=1, le=86_400)] = 120
    """Seconds a command may take where the model asks for no other time."""

    max_timeout_s: Annotated[int, Field(ge=1, le=86_400)] = 600
    """The most seconds the model may ask for."""

    max_output_bytes: Annotated[int, Field(ge=1_000, le=1_000_000)] = 30_000
    """Bytes of a command's output that are kept, half of its beginning and half of its end."""

    max_processes: Annotated[int, Field(ge=8, le=100_000)] = 512
    """Processes a command may have at once; with more it is stopped."""

    memory_mb: Annotated[int, Field(ge=64, le=10_000_000)] = 4096
    """Memory all processes of a command may hold together; with more it is stopped."""

    file_mb: Annotated[int, Field(ge=1, le=10_000_000)] = 2048
    """The largest file a command may write."""
