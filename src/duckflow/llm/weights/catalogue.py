"""Catalogue of models that can be embedded, and of the wheels with their weights (catalogue.toml)."""

import tomllib
from functools import cache
from pathlib import Path

from duckflow.domain.errors import UsageError
from duckflow.domain.frozen import Frozen


class WeightsPart(Frozen):
    """Part of the weights, stored as `member` of a wheel. Nothing else in the wheel is used."""

    wheel: str
    version: str
    wheel_size: int
    wheel_sha256: str
    member: str
    size: int
    sha256: str


class Weights(Frozen):
    """A model's file. Its parts, joined in order, are that file."""

    name: str
    title: str
    licence: str
    file: str
    size: int
    sha256: str
    hub_repository: str | None = None
    for_tests: bool = False
    parts: tuple[WeightsPart, ...] = ()


@cache
def known() -> tuple[Weights, ...]:
    """Return every model of the catalogue, the default first."""
    text = Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
    return tuple(Weights.model_validate(row) for row in tomllib.loads(text)["models"])


def look_up(name: str) -> Weights:
    """Return the model called `name`. Raise UsageError if the catalogue has none."""
    for weights in known():
        if weights.name == name:
            return weights
    names = ", ".join(weights.name for weights in known() if not weights.for_tests)
    raise UsageError("weights.unknown", name=name, known=names)
