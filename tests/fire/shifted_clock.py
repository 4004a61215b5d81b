"""A clock that can be set, for some programs only: ``shifted_clock.c``, compiled and preloaded into them."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")


@dataclass(frozen=True)
class ShiftedClock:
    """How far the clock of some programs is from the right time."""

    library: Path
    shift: Path  # The file that the programs look at whenever they look at the clock.

    def environment(self) -> dict[str, str]:
        """What a program has to find in its environment, to have this clock."""
        return {"LD_PRELOAD": str(self.library), "PENSTOCK_SHIFTED_CLOCK": str(self.shift)}

    def set_seconds(self, seconds: int) -> None:
        """Sets the clock so many seconds ahead of the right time."""
        with self.shift.open("r+b") as file:
            file.write(struct.pack("q", seconds))


def shifted_clock(folder: Path) -> ShiftedClock | None:
    """A clock that is right, with its files in a folder; None where there is no compiler for it."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    clock = ShiftedClock(folder / "shifted_clock.so", folder / "shifted_clock")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", clock.library, _SOURCE, "-ldl"], check=True)
    clock.shift.write_bytes(struct.pack("q", 0))
    return clock
