"""A whole run on real weights: the path is proven, not the sense (this model has none)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from duckflow.config.settings import EmbeddedSettings
from duckflow.llm.local.embedded import open_embedded


@pytest.mark.long
def test_a_task_runs_through_on_the_embedded_model(folder: Path, smollm2: Path):
    """K2, M3: no key, no network; each answer is a valid Decision under the schema, contents apart."""
    flags = ["--json", "--mode", "edits", "--max-loops", "2", "--workspace", str(folder)]
    command = [sys.executable, "-m", "duckflow", "run", "Create hello.py that prints hello", *flags]
    done = subprocess.run(
        [*command, "--model", f"embedded:{smollm2}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "DUCKFLOW_LLM__EMBEDDED__WINDOW": "2048", "DUCKFLOW_LLM__EMBEDDED__THREADS": "1"},
        timeout=300,
        check=False,
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [event["type"] for event in events]
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 4), done.stderr
    assert kinds[:2] == ["session_started", "user_message"]
    assert kinds[-1] == "request_finished"
    used = [event for event in events if event["type"] == "usage"]
    assert used
    assert all(event["tokens"]["input_tokens"] > 300 for event in used)
    if done.returncode == 4:
        # It may ramble past the end of a content; nothing is written then.
        assert [event["key"] for event in events if event["type"] == "error"] == ["llm.content_cut"]
        assert list(folder.iterdir()) == []
    else:
        assert "decision" in kinds


async def test_F4_tokens_are_counted_by_the_models_own_tokenizer(smollm2: Path):
    model = await open_embedded(smollm2, EmbeddedSettings(window=512, threads=1))
    try:
        for text in ("hello", "こんにちは、世界", "print('hi')\n" * 20):
            assert 0 < await model.count_tokens(text) <= len(text.encode()), text
    finally:
        await model.aclose()
