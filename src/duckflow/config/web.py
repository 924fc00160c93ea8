"""The settings of looking outside."""

from typing import Annotated

from pydantic import Field

from duckflow.domain.frozen import Frozen


class WebSettings(Frozen):
    """Pages of the web, which the model may ask for."""

    fetch: bool = False
    """Whether there is `web.fetch`; you are asked for each site."""

    private: bool = False
    """Whether it may fetch from this machine and from private networks."""

    max_chars: Annotated[int, Field(ge=500, le=1_000_000)] = 30_000
    """Characters of a page that are kept, half of its beginning and half of its end."""

    max_bytes: Annotated[int, Field(ge=1_000, le=100_000_000)] = 2_000_000
    """Bytes that are read of a page."""

    timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 30.0
    """Seconds it may take."""
