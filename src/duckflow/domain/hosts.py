"""Hosts that commands may reach: how they are written, and what a grant covers (SAFETY 22)."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from duckflow.domain.patterns import lazy_regex

REGISTRIES = "registries"
"""Word for all hosts from which package managers install."""

_HOST = lazy_regex(
    r"(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.){0,20}[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
)
_LONGEST = 253
_PORT = lazy_regex(r"[1-9][0-9]{0,4}")


def read_host(written: str) -> str:
    """Return a host as it is compared: `registries`, `github.com`, `*.github.com`, or with another port."""
    host, colon, port = written.strip().lower().partition(":")
    if len(host) > _LONGEST or not _HOST.fullmatch(host) or (colon and not _PORT.fullmatch(port)):
        raise ValueError(f"{written[:100]} is no host; write a name such as github.com, or {REGISTRIES}")
    return host + colon + port


Host = Annotated[str, AfterValidator(read_host)]


def covers(grants: Iterable[str], host: str) -> bool:
    """Return whether one of the grants allows what `read_host` returned."""
    return any(
        host == grant
        or (grant.startswith("*.") and host.endswith(grant[1:]))
        or (grant == REGISTRIES and host in registries())
        for grant in grants
    )


@cache
def registries() -> frozenset[str]:
    """Return the hosts from which package managers install."""
    lines = Path(__file__).with_name("registries.txt").read_text("ascii").splitlines()
    names = (name for line in lines if not line.startswith("#") for name in line.split())
    return frozenset(".".join(reversed(name.split("."))) for name in names)
