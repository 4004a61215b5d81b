"""Measures how fast events are replayed from files as a stream, beside queries that are written by hand.

Run it with ``python benchmarks/stream_replay.py``, and ``--scale=0.1`` for a first look.

Each contender is a process of its own and runs each workload over and over, in turn with the others, after a minute
that does not count. What a run writes is compared, total by total, with what plain Python finds. Speeds are relative to
the first contender by hand: 0.5 means half as fast. With many keys all contenders get two fifths of the events.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from options import parsed_settings
from processes import running_workers
from stream_comparison import TITLES, Work, add_turns, compared, write_comparison
from stream_inputs import REPLAYS, Replay

CONTENDERS = {
    "sums": ("native_sql", "native_python", "penstock"),
    "team_panes": ("rows", "frames", "penstock"),
    "user_panes": ("rows", "frames", "penstock"),
}
"""Who runs what; the first one is what the others are compared with."""

PARTS = {"sums": 1.0, "team_panes": 1.0, "user_panes": 0.4}
"""The part of the events that a workload has."""


def work(replay: Replay, settings: argparse.Namespace) -> Work:
    """A workload with its input; fewer events are in fewer files, since smaller files would be another workload."""
    part = PARTS[replay.name] * settings.scale
    events, files = int(settings.events * part), max(1, round(settings.files * part))
    return Work(
        title=replay.title,
        contenders=CONTENDERS[replay.name],
        job="replay",
        arguments={"workload": replay.name, "files_per_batch": settings.files_per_batch},
        events=events,
        source=replay.make_files(settings.folder, events, files),
    )


def main(given: Sequence[str] | None = None) -> None:
    """Runs everything, prints the tables and writes the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="the part of the full input to run over")
    parser.add_argument("--events", type=int, default=2_500_000, help="the full input")
    parser.add_argument("--files", type=int, default=50, help="how many files the full input is in")
    parser.add_argument("--files-per-batch", type=int, default=2)
    add_turns(parser, runs=3)
    parser.add_argument("--workloads", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    settings = parsed_settings(parser, given, TITLES, "stream_replay.json")
    replays = [replay for replay in REPLAYS if replay.name in settings.workloads]
    names = [
        name
        for name in settings.contenders
        if any(name in CONTENDERS[workload] for workload in settings.workloads)
    ]
    with running_workers(names, settings.cores, settings.folder) as workers:
        workloads = {replay.name: compared(work(replay, settings), settings, workers) for replay in replays}
    write_comparison(settings, workloads)


if __name__ == "__main__":
    main()
