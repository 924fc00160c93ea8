"""Work that is finished before its caller goes on even when that one is cancelled."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


async def finish(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run it in a thread. A cancelled caller waits for its end: nothing changes behind its back."""
    return await see_through(asyncio.to_thread(function, *args, **kwargs))


async def see_through(started: Coroutine[Any, Any, R]) -> R:
    """Wait for the end of this work, also when cancelled meanwhile."""
    work = asyncio.ensure_future(started)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        if not work.done():
            await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # looked at, so that nobody reports it as forgotten
        raise
