"""The files of numbers that are kept: each says what machine and which packages its numbers are from."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"

_PACKAGES = ("apache-beam", "pyarrow", "pyspark")


def write_numbers(path: Path, cores: int, numbers: dict[str, Any]) -> None:
    """Writes numbers as JSON, with the machine and the versions that they depend on."""
    machine = {"cores": cores, "processor": _processor(), "python": platform.python_version()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": {**machine, **_versions()}, **numbers}, indent=1) + "\n")
    print(f"numbers: {path}")


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")
