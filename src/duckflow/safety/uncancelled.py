"""Work that is finished before its caller continues, even if the caller is cancelled."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


async def run_in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function in a thread. A cancelled caller still waits until the function has returned."""
    return await shielded(asyncio.to_thread(function, *args, **kwargs))


async def shielded(started: Coroutine[Any, Any, R]) -> R:
    """Wait for the end of this work, even if cancelled meanwhile, perhaps repeatedly."""
    work = asyncio.ensure_future(started)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # retrieved, so that asyncio does not report it as unhandled
        raise
