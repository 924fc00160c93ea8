"""Replay a recorded run of a strong model in a checkout, and report how it ends.

    bench/replay.py RECORDING TREE

RECORDING is a file in bench/recordings. TREE is a checkout of its project; it is changed.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fakes.model_server import ModelServer
from fakes.recorded import Recording


def main() -> int:
    """Replay the recording and return the exit code of the run."""
    recording, tree = Path(sys.argv[1]), Path(sys.argv[2])
    player = Recording(recording)
    with ModelServer(player) as server, tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "HOME": home, "OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{server.url}/v1"}
        words = ["run", "--model", "openai:gpt-6", "--mode", "auto", "--workspace", str(tree)]
        words.append(player.request)
        ended = subprocess.run([sys.executable, "-m", "duckflow", *words], env=env, check=False)
    left = {kind: len(answers) for kind, answers in player.left.items() if answers}
    print(f"exit code {ended.returncode}, answers not asked for: {left or 'none'}")
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
