"""`duckflow acp`: the Agent Client Protocol for editors, on standard input and output (M6)."""

from importlib.util import find_spec

from duckflow.cli.flags import ModeFlag, ModelFlag, TrustFlag
from duckflow.cli.plain_flags import settings_flags
from duckflow.domain.errors import UsageError


def acp(model: ModelFlag = None, mode: ModeFlag = None, *, trust: TrustFlag = False) -> None:
    """Serve an editor until it closes the connection."""
    if find_spec("acp") is None:
        raise UsageError("editors.not_installed")
    import asyncio  # noqa: PLC0415 - heavy, and not for --help

    from duckflow.cli.editors.agent import serve  # noqa: PLC0415 - heavy, and not for --help

    asyncio.run(serve(settings_flags(model, mode), trust=trust))
