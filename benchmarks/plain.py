"""The workloads without any engine: one process, one loop, dictionaries."""

from __future__ import annotations

from pathlib import Path

import totals

JOBS = {
    "word_count": totals.word_count,
    "team_sums": totals.team_sums,
    "user_sessions": totals.user_sessions,
}


def run(job: str, source: str, target: str) -> None:
    """Runs a workload from a text file to a folder with one text file."""
    with open(source, encoding="ascii") as lines:
        found = JOBS[job](lines)
    folder = Path(target)
    folder.mkdir()
    with (folder / "part-0").open("w", encoding="ascii") as file:
        file.writelines(f"{name}\t{total}\n" for name, total in found.items())
