"""The catalogue of weights is whole and consistent."""

import re

import pytest

from duckflow.config.settings import EmbeddedSettings
from duckflow.domain.errors import UsageError
from duckflow.llm.weights.catalogue import known, look_up

# The files' makers publish these numbers; the wheels only carry the files.
MAKERS_HASHES = {
    "qwen2.5-coder-1.5b": "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    "qwen2.5-coder-0.5b": "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    "smollm2-135m": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
}


def test_the_hashes_are_those_of_the_models_makers():
    assert {weights.name: weights.sha256 for weights in known()} == MAKERS_HASHES


def test_the_parts_add_up_to_the_file():
    for weights in known():
        assert sum(part.size for part in weights.parts) == weights.size


def test_every_part_is_pinned():
    parts = [part for weights in known() for part in weights.parts]
    assert len(parts) == 22 + 6 + 1
    assert len({part.wheel for part in parts}) == len(parts)
    for part in parts:
        assert re.fullmatch(r"[0-9a-f]{64}", part.wheel_sha256)
        assert re.fullmatch(r"[0-9a-f]{64}", part.sha256)


def test_the_default_model_is_the_first_of_the_catalogue():
    assert known()[0].name == EmbeddedSettings().model


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(UsageError) as caught:
        look_up("gpt-9")
    assert caught.value.key == "weights.unknown"
    assert caught.value.values["known"] == "qwen2.5-coder-1.5b, qwen2.5-coder-0.5b"
