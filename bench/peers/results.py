"""Measurements, stored as JSON with the machine and the date, for the page of benchmarks."""

import json
import os
import platform
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "results"


def write_result(part: str, values: dict[str, Any]) -> Path:
    """Store the measurements of one part."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{part}.json"
    about = {"date": datetime.now(UTC).date().isoformat(), "machine": machine()}
    path.write_text(json.dumps({**about, **values}, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return path


def read_result(part: str) -> dict[str, Any] | None:
    """Return the stored measurements of a part, None if it was never measured."""
    path = RESULTS / f"{part}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the minimum, the median and the maximum."""
    return min(values), statistics.median(values), max(values)


def machine() -> dict[str, Any]:
    """Describe the machine that the numbers were measured on."""
    load = os.getloadavg()[0]
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "load": round(load, 1),
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    part = next((line.partition(":")[2].strip() for line in lines if line.startswith("CPU part")), "")
    return named or ({"0xd0c": "Neoverse N1", "0xd40": "Neoverse V1", "0xd4f": "Neoverse V2"}.get(part, part))
