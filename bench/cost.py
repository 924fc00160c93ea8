"""Compares Duckflow with other agents: start, time of a loop, memory, characters sent.

    .venv/bin/python bench/cost.py [--rounds N] [--loops N] [--files N] [--only NAME ...]

Each agent does the same: one small shell command per loop, requested by a model that answers at once. Runs
alternate between the agents without a network (in a network namespace), and the medians count. The other
agents are installed in `.bench` on first use. Writes bench/results/cost.json, from which `bench/page.py`
makes docs/benchmarks.md.
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from peers.agents import AGENTS
from peers.isolation import without_network
from peers.results import spread, write_result
from peers.runs import Run, run


def main() -> None:
    """Print a table and store the measurements."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--loops", type=int, default=20)
    options.add_argument("--files", type=int, default=20)
    options.add_argument("--only", nargs="*", default=None)
    chosen = options.parse_args()
    versions = {one.name: one.install() for one in AGENTS if chosen.only is None or one.name in chosen.only}
    isolated = without_network()
    agents = [one for one in AGENTS if versions.get(one.name)]
    runs: dict[str, list[Run]] = {one.name: [] for one in agents}
    memory: dict[str, list[float]] = {one.name: [] for one in agents}
    for number in range(chosen.rounds + 1):
        for agent in agents:
            measured = run(agent, chosen.loops, files=chosen.files)
            if number:  # the first round is a warm-up
                runs[agent.name].append(measured)
                print(f"{agent.name:<16} {measured.start_s:6.2f} s {measured.loop_ms:7.1f} ms", flush=True)
    for agent in agents:
        memory[agent.name] = [
            run(agent, chosen.loops, files=chosen.files, memory=True).memory_mb for _ in range(2)
        ]
    rows = [
        {
            "name": name,
            "version": versions[name],
            "start_s": spread([one.start_s for one in seen]),
            "loop_ms": spread([one.loop_ms for one in seen]) if seen[0].loops > 2 else None,
            "memory_mb": spread(memory[name]),
            "cost": statistics.median(one.cost for one in seen) if seen[0].loops > 2 else None,
            "loops": seen[0].loops,
        }
        for name, seen in runs.items()
    ]
    write_result(
        "cost",
        {
            "rounds": chosen.rounds,
            "loops": chosen.loops,
            "files": chosen.files,
            "isolated": isolated,
            "rows": rows,
        },
    )
    for row in rows:
        loop, cost = row["loop_ms"], row["cost"]
        print(
            f"{row['name']:<16} start {row['start_s'][1]:.2f} s   loop "
            f"{f'{loop[1]:.1f} ms' if loop else '-':>9}   memory {row['memory_mb'][1]:.0f} MB   "
            f"cost {f'{cost:,.0f}' if cost else '-'}"
        )


if __name__ == "__main__":
    main()
