"""A program that is started again on the checkpoints of others: every kind of state, over recorded scores.

Nothing that it writes depends on the order of keys, or on how files are cut into micro-batches.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import penstock as beam
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.window import FixedWindows, Sessions
from tests.spark.restartable import Ledger, arrival_of, best_of, parsed, shown, time_of

FILES = 6
LINES = 60


@dataclass(frozen=True)
class Changes:
    """How a later version of the program differs from the first one."""

    more_source: bool = False  # It reads further files, which it only copies.
    names: bool = True  # It reads names of teams.
    names_first: bool = True  # It reads them before the scores.
    deeper: bool = False  # Two more groupings in the longest row but one, which is the longest now.


def write_scores(folder: Path) -> None:
    """Files of scores, some of them late."""
    random = Random(4)
    folder.mkdir(parents=True)
    for number in range(FILES):
        times = [max(0, number * 60 + random.randrange(-90, 30)) for _ in range(LINES)]
        lines = [f"team{random.randrange(5)},{random.randrange(9)},{time},{number}" for time in times]
        (folder / f"{number:03d}.txt").write_text("\n".join(lines) + "\n")
    set_times(folder)


def set_times(folder: Path) -> None:
    """Streams read files in the order in which they have changed."""
    for number, file in enumerate(sorted(folder.glob("*.txt"))):
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))


def plan_in(checkpoint: Path) -> dict[str, Any]:
    """The latest plan of a checkpoint."""
    files = {int(file.stem.removeprefix("plan-")): file for file in checkpoint.glob("plan-*.json")}
    return dict(json.loads(files[max(files)].read_text()))


def build(pipeline: beam.Pipeline, source: str, target: str, changes: Changes = Changes()) -> None:
    """All of the pipeline."""
    if changes.names and changes.names_first:
        _names(pipeline, target)
    lines = pipeline | "Scores" >> _stream(f"{source}/*.txt")
    if changes.names and not changes.names_first:
        _names(pipeline, target)
    scores = lines | "Parse" >> beam.Map(parsed)
    minutes = scores | "Minutes" >> beam.WindowInto(FixedWindows(60), allowed_lateness=100)
    # Windows in columns; behind them sessions, key by key.
    sums = minutes | "Sums" >> beam.CombinePerKey(sum)
    _write(sums | "Show sums" >> beam.Map(shown), target, "sums")
    panes = AfterWatermark(late=AfterCount(1))
    bursts = scores | "Bursts" >> beam.WindowInto(
        Sessions(7), panes, AccumulationMode.ACCUMULATING, allowed_lateness=100
    )
    longest = bursts | "Burst" >> beam.CombinePerKey(sum) | "By team" >> beam.Map(lambda pair: pair)
    ends = longest | "Hours" >> beam.WindowInto(FixedWindows(600), allowed_lateness=1000)
    best = ends | "Best" >> beam.CombinePerKey(max)
    _write(best | "Show best" >> beam.Map(shown), target, "best")
    # Lists that are too long to be written whole with each micro-batch.
    texts = scores | "Texts" >> beam.MapTuple(lambda team, points: (team, f"{points}" * 8_000))
    lists = texts | "Days of texts" >> beam.WindowInto(FixedWindows(86_400)) | "Lists" >> beam.GroupByKey()
    begins = lists | "Show lists" >> beam.MapTuple(
        lambda team, own: f"{team} {sorted(text[0] for text in own)}"
    )
    _write(begins, target, "lists")
    # Elements, and the keys of a DoFn with state, that wait for a side input.
    most = minutes | "Points" >> beam.Values() | "Most" >> beam.CombineGlobally(best_of).without_defaults()
    told = minutes | "Ledger" >> beam.ParDo(Ledger(), beam.pvalue.AsSingleton(most))
    _write(told, target, "shares")
    parts = minutes | "Part" >> beam.Map(
        lambda pair, most: f"{pair} of {most}", beam.pvalue.AsSingleton(most)
    )
    _write(parts, target, "parts")
    if changes.more_source:
        _write(pipeline | "More" >> _stream(f"{source}/*.more"), target, "more")
    if changes.deeper:
        days = best | "Days" >> beam.WindowInto(FixedWindows(86_400), allowed_lateness=1000)
        daily = days | "Daily" >> beam.CombinePerKey(sum)
        weeks = daily | "Weeks" >> beam.WindowInto(FixedWindows(7 * 86_400), allowed_lateness=1000)
        _write(
            weeks | "Weekly" >> beam.CombinePerKey(sum) | "Show weekly" >> beam.Map(shown), target, "weekly"
        )


def _stream(pattern: str) -> Any:
    read = beam.io.ReadFromText(pattern, validate=False)
    return read.as_stream(
        time_of, BoundedDisorder(20), arrival_time=arrival_of, existing_only=True, max_files_per_batch=1
    )


def _names(pipeline: beam.Pipeline, target: str) -> None:
    _write(pipeline | "Names" >> beam.Create([f"team{number}" for number in range(5)]), target, "names")


def _write(lines: Any, target: str, name: str) -> None:
    _ = lines | f"Write {name}" >> beam.io.WriteToText(f"{target}/{name}")


def start(
    source: Path, folder: Path, shards: int | None = None, changes: Changes = Changes(), *flags: str
) -> Any:
    """Starts the program on its checkpoint, in the session of the test; without a number, with its shards."""
    own = [f"--checkpoint_location={folder}/checkpoint", "--mode=streaming"]
    if shards is not None:
        own.append(f"--shuffle_partitions={shards}")
    options = PipelineOptions([*own, *flags])
    pipeline = beam.Pipeline(options=options)
    build(pipeline, str(source), str(folder / "out"), changes)
    return pipeline.run()


def run_until(result: Any, folder: Path, batch: int) -> None:
    """Cancels a run once a micro-batch is done."""
    while not any((folder / "checkpoint").glob(f"spark*/commits/{batch}")):
        assert result.wait_until_finish(duration=20) is None
    result.cancel()


def content_of(folder: Path) -> dict[str, list[str]]:
    """All lines of each sink, by the names of the files without their numbers."""
    found: dict[str, list[str]] = {}
    for file in sorted((folder / "out").glob("[!_]*")):
        if not file.is_dir():
            found.setdefault(file.name.partition("-")[0], []).extend(file.read_text().splitlines())
    return {name: sorted(lines) for name, lines in found.items()}
