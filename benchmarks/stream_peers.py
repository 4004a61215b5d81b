"""Measures other engines on the files of the table of streams: sums per team and two minutes, from lines of text.

Run it with ``python benchmarks/stream_peers.py --install``. The option installs the peers' wheels, in the versions that
`PEERS` has, each into an environment of its own below the folder of data, unless they are there; without it, only those
that are there are measured. Flink needs a Java of 11, 17 or 21: ``--java`` names its folder, by default JAVA_HOME.

Each peer is a process of its own, since it is started for one job, and its start is measured apart, with a file of one
line. Penstock's and Spark's numbers for the same files are the row ``text/functions/teams/parquet`` of the table. A
peer that parses with Python in another process gets a part of the events. All totals are compared with those that come
out without an engine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cell_inputs import Events, Totals, expected
from options import ROOT
from outcome import FOLDER, write_numbers
from processes import tree_cpu_seconds
from stream_inputs import LAST_KEY
from stream_report import markdown
from targets import empty_target

_HERE = Path(__file__).parent
_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Peer:
    """Another engine, and how it does the work."""

    name: str  # As in the numbers.
    title: str  # For people.
    wheel: str  # What pip installs, pinned.
    program: str
    arguments: tuple[str, ...] = ()  # Before the folder of the files and what is written.
    part: float = 1.0  # Of the events.
    files: int = 10  # Flink reads several files at once, and would drop what is then late.


PEERS = (
    Peer("bytewax", "Bytewax", "bytewax==0.21.1", "peer_bytewax.py"),
    Peer("flink_sql", "Flink SQL, no Python", "apache-flink==2.3.0", "peer_flink.py", ("sql",), files=1),
    Peer(
        "flink_python",
        "PyFlink, Python parse",
        "apache-flink==2.3.0",
        "peer_flink.py",
        ("python",),
        0.2,
        files=1,
    ),
)


def python_of(peer: Peer, folder: Path, is_installing: bool) -> Path | None:
    """The Python that has a peer's wheel; None if there is none."""
    environment = folder / "peers" / peer.wheel
    python = environment / "bin" / "python"
    if not python.exists() and is_installing:
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        done = subprocess.run([str(python), "-m", "pip", "install", "-q", peer.wheel])
        if done.returncode:
            shutil.rmtree(environment)
            raise SystemExit(f"{peer.wheel} cannot be installed")
    return python if python.exists() else None


def measure(peer: Peer, python: Path, settings: argparse.Namespace) -> dict[str, Any]:
    """The times of a peer, in all and for one event."""
    count = max(2_000, int(settings.events * peer.part))
    runs = {}
    for name, events in (("start", Events(1)), ("whole", Events(count))):
        source = events.make_files(settings.folder / "cells", "text", peer.files if name == "whole" else 1)
        runs[name] = [_run(peer, python, source, events, settings) for _ in range(settings.turns)]
    return {"title": peer.title, "wheel": peer.wheel, "events": count, **runs}


def _run(
    peer: Peer, python: Path, source: Path, events: Events, settings: argparse.Namespace
) -> dict[str, float]:
    target = empty_target(settings.folder, f"peer-{peer.name}")
    command = [str(python), str(_HERE / peer.program), *peer.arguments, str(source), str(target)]
    environment = {**os.environ, **({"JAVA_HOME": settings.java} if settings.java else {})}
    log = settings.folder / f"peer-{peer.name}.log"
    with log.open("w") as output:
        start, cpu_seconds = time.perf_counter(), 0.0
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        while process.poll() is None:
            cpu_seconds = max(cpu_seconds, tree_cpu_seconds(process.pid))
            time.sleep(_POLL_SECONDS)
        wall_seconds = time.perf_counter() - start
    if process.returncode:
        raise RuntimeError(f"{peer.title} failed; see {log}")
    if written(target) != expected(events, "teams"):
        raise AssertionError(f"the totals of {peer.title} are wrong; see {target}")
    return {"wall_seconds": round(wall_seconds, 3), "cpu_seconds": round(cpu_seconds, 3)}


def written(target: Path) -> Totals:
    """The totals that a peer has written, as text or as CSV; without the last event's totals."""
    files = [target] if target.is_file() else [path for path in target.rglob("*") if path.is_file()]
    totals: Totals = {}
    for path in files:
        for line in path.read_text().splitlines():
            team, start, total = line.replace("\t", ",").replace(" ", ",").split(",")
            if team != LAST_KEY:
                totals[f"{team} {start}"] = totals.get(f"{team} {start}", 0) + int(total)
    return totals


def table(peers: dict[str, dict[str, Any]]) -> str:
    """A row for each peer; a rate counts the time of the events alone, without the start."""
    head = (
        "sums per team, lines of text",
        "events",
        "start s",
        "whole s",
        "CPU s",
        "events/s",
        "events/CPU s",
    )
    rows = []
    for found in peers.values():
        least = {
            name: {kind: min(run[kind] for run in found[name]) for kind in ("wall_seconds", "cpu_seconds")}
            for name in ("start", "whole")
        }
        rates = [
            round(found["events"] / max(least["whole"][kind] - least["start"][kind], 0.001))
            for kind in ("wall_seconds", "cpu_seconds")
        ]
        rows.append(
            (
                f"{found['title']} ({found['wheel']})",
                f"{found['events']:,}",
                f"{least['start']['wall_seconds']:.1f}",
                f"{least['whole']['wall_seconds']:.1f}",
                f"{least['whole']['cpu_seconds']:.1f}",
                *(f"{rate:,}" for rate in rates),
            )
        )
    return markdown(head, rows)


def main(given: Sequence[str] | None = None) -> None:
    """Prints the table and writes all numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--install", action="store_true", help="install the wheels of peers that are not there"
    )
    parser.add_argument("--peers", nargs="+", choices=[peer.name for peer in PEERS], help="default: all")
    parser.add_argument("--java", default=os.environ.get("JAVA_HOME"), help="for Flink; default JAVA_HOME")
    parser.add_argument("--events", type=int, default=2_500_000)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "benchmarks", help="for data, wheels, logs"
    )
    parser.add_argument("--results", type=Path, help="the file to write; default is kept if all is measured")
    settings = parser.parse_args(given)
    settings.folder = settings.folder.resolve()
    is_full = settings.peers is None and settings.events == parser.get_default("events")
    asked = [peer for peer in PEERS if settings.peers is None or peer.name in settings.peers]
    pythons = {peer: python_of(peer, settings.folder, settings.install) for peer in asked}
    found = {peer.name: measure(peer, python, settings) for peer, python in pythons.items() if python}
    if missing := [peer.wheel for peer, python in pythons.items() if python is None]:
        print(f"not measured: {', '.join(missing)}; --install installs them")
    if not found:
        return
    print(table(found), end="\n\n")
    is_kept = is_full and not missing
    results = settings.results or (FOLDER if is_kept else settings.folder) / "stream_peers.json"
    write_numbers(results, settings.cores, {"peers": found})


if __name__ == "__main__":
    main()
