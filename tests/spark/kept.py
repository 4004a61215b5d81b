"""The checkpoints that released versions have made, each with what its program writes in the end."""

from __future__ import annotations

import json
from pathlib import Path

from tests.golden.checkpoints import keep as KEEP

FOLDER = Path(__file__).parents[1] / "golden" / "checkpoints"


VERSIONS = sorted(path.name for path in FOLDER.iterdir() if (path / KEEP.ARCHIVE).exists())
"""The versions that have kept one."""


def unpack(version: str, folder: Path) -> dict[str, list[str]]:
    """Unpacks what a version has kept; what the program writes in the end."""
    KEEP.unpack(FOLDER / version / KEEP.ARCHIVE, folder)
    return expected(version)


def expected(version: str) -> dict[str, list[str]]:
    """What the program writes in the end."""
    return dict(json.loads((FOLDER / version / KEEP.EXPECTED).read_text()))


def refusal_of(version: str) -> str | None:
    """With what words this version refuses a kept checkpoint; None if it has to go on with it."""
    words = FOLDER / version / "refused.txt"
    return words.read_text().strip() if words.exists() else None
