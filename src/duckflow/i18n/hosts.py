"""Hosts in words for the user."""

from collections.abc import Iterable

from duckflow.domain.hosts import REGISTRIES
from duckflow.i18n.catalogue import text


def host_names(hosts: Iterable[str]) -> tuple[str, ...]:
    """Return hosts as people call them: the word for all package registries becomes one of their language."""
    return tuple(text("approval.registries") if one == REGISTRIES else one for one in hosts)
