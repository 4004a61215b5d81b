"""A source for tests: each partition is a file, and each line of it a numbered record, such as ``12 red``."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.io.custom.ranges import NumberedSource, SourceRange, TimedElements, UnreadableElement


class Files(NumberedSource[Any]):
    """Lines with the seconds of their time and a word; ``bad`` instead of a time cannot be decoded."""

    range_records = 3
    poll_seconds = 0.01

    def __init__(
        self, folder: Path | str, *, has_times: bool = False, patience_seconds: float = 60.0
    ) -> None:
        self.folder = str(folder)
        self.has_times = has_times
        self.patience_seconds = patience_seconds

    def describe(self) -> str:
        return f"files in {Path(self.folder).name}"

    def bounds(self) -> dict[str, tuple[int, int]]:
        if os.path.exists(f"{self.folder}/away"):
            with open(f"{self.folder}/asked", "a") as asked:
                asked.write(".")
            raise ConnectionError("the folder is away")
        names = sorted(name for name in os.listdir(self.folder) if name.endswith(".log"))
        return {name: (self._removed(name), len(self._lines(name))) for name in names}

    def read(self, piece: SourceRange) -> Iterator[Any]:
        lines = self._lines(piece.partition)[piece.start : piece.end]
        if "stop" in lines:
            raise LookupError("no stop")
        elements: list[Any] = []
        times_micros = []
        for line in lines:
            time, _, word = line.partition(" ")
            if time == "bad":
                elements.append(UnreadableElement(line.encode(), ValueError("bad line")))
                times_micros.append(0)
            else:
                elements.append(word if self.has_times else (int(time), word))
                times_micros.append(int(time) * 1_000_000)
        half = len(elements) // 2
        for part in (slice(0, half), slice(half, None)):
            yield (TimedElements(elements[part], times_micros[part]) if self.has_times else elements[part])

    def commit(self, position: Any) -> None:
        with open(f"{self.folder}/committed", "w") as file:
            file.write(str(sum(position.values())))

    def _lines(self, name: str) -> list[str]:
        return Path(self.folder, name).read_text().splitlines()

    def _removed(self, name: str) -> int:
        mark = Path(self.folder, f"{name}.removed")
        return int(mark.read_text()) if mark.exists() else 0


def add(folder: Path, name: str, *lines: str) -> None:
    with open(folder / f"{name}.log", "a") as file:
        file.write("".join(f"{line}\n" for line in lines))


def has_been_away(folder: Path, times: int = 3) -> bool:
    """True if a source has been asked that often while its folder is away."""
    asked = folder / "asked"
    return asked.exists() and asked.stat().st_size >= times


def wait_for(condition: Any, result: Any, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "nothing happens"
        result.wait_until_finish(duration=50)
