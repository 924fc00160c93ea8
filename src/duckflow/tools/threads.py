"""Blocking work, finished before its caller goes on even when that one is cancelled."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


async def finish(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run it in a thread. A cancelled caller waits for its end: nothing changes behind its back."""
    work = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        if not work.done():
            await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # looked at, so that nobody reports it as forgotten
        raise
