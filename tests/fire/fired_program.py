"""The program under fire: numbers of one source, as rows, panes and steps of a state, into exact sinks.

Argument: a folder with ``settings.json``, which says what to read and where to write. Whoever puts the file
``trap.json`` there has the program die, or lose a file that it is writing, at a point of its next commit: see
``traps.py``. It drains when there is a file ``drain``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import penstock as beam
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.userstate import ReadModifyWriteStateSpec
from penstock.transforms.window import FixedWindows

EPOCH_SECONDS = 1_700_000_040
NUMBERS_PER_SECOND = 100
"""Of event time, which follows from the number alone: no clock can make an element late."""

KEYS = 20
WINDOW_SECONDS = 5
DISORDER_SECONDS = 30


class Number(NamedTuple):
    """A row of the tables."""

    number: int


class Line(NamedTuple):
    """A row of the tables of panes and of steps."""

    line: str


def seconds_of(number: int) -> float:
    """The event time of a number."""
    return EPOCH_SECONDS + number / NUMBERS_PER_SECOND


class Steps(beam.DoFn):
    """Counts the numbers of a key: each element gives the key, how many came before, and the number."""

    COUNT = ReadModifyWriteStateSpec("count", beam.coders.VarIntCoder())

    def process(self, element: tuple[int, int], count: Any = beam.DoFn.StateParam(COUNT)) -> Any:
        """Takes a number."""
        key, number = element
        before = count.read() or 0
        count.write(before + 1)
        yield f"{key} {before} {number}"


def pane(key: int, numbers: Any, window: Any = beam.DoFn.WindowParam) -> str:
    """A pane as a line: the key, the beginning of the window, and its numbers."""
    return f"{key} {int(window.start)} {' '.join(map(str, sorted(numbers)))}"


def read(pipeline: beam.Pipeline, settings: dict[str, Any]) -> Any:
    """The numbers of the source."""
    watermark = BoundedDisorder(DISORDER_SECONDS)
    match settings["source"]:
        case "files":
            lines = beam.io.ReadFromText(f"{settings['folder']}/in/*.txt")
            stream = lines.as_stream(lambda line: seconds_of(int(line)), watermark, max_files_per_batch=200)
            return pipeline | stream | beam.Map(int).with_output_types(int)
        case "kafka":
            from penstock.io.kafka import ReadFromKafka

            topic = ReadFromKafka({"bootstrap.servers": settings["brokers"]}, ["numbers"])
            stream = topic.as_stream(
                lambda pair: seconds_of(int(pair[1])), watermark, max_records_per_batch=4_000
            )
            return pipeline | stream | beam.MapTuple(lambda key, value: int(value)).with_output_types(int)
        case _:
            from penstock.io.postgres_changes import ReadChangesFromPostgres

            changes = ReadChangesFromPostgres(settings["url"], "numbers", slot="fire", publication="numbers")
            stream = changes.as_stream(
                lambda change: seconds_of(change[1].number), watermark, max_records_per_batch=4_000
            )
            return pipeline | stream | beam.MapTuple(lambda kind, row: row.number).with_output_types(int)


def write(numbers: Any, sink: str, settings: dict[str, Any]) -> Any:
    """All numbers, as rows of an exact sink."""
    folder = settings["folder"]
    rows = numbers | f"RowsFor_{sink}" >> beam.Map(Number).with_output_types(Number)
    match sink:
        case "text":
            lines = numbers | "Text" >> beam.Map(str)
            return lines | "WriteText" >> beam.io.WriteToText(f"{folder}/disk/text/rows")
        case "parquet":
            return rows | "WriteParquet" >> beam.io.WriteToParquet(f"{folder}/disk/parquet/rows")
        case "delta":
            from penstock.io.delta import WriteToDelta

            return rows | "WriteDelta" >> WriteToDelta(f"{folder}/disk/delta")
        case "iceberg":
            from penstock.io.iceberg import WriteToIceberg

            return rows | "WriteIceberg" >> WriteToIceberg("lake.rows", settings["catalog"])
        case "postgres":
            from penstock.io.database import WriteToDatabase

            return rows | "WriteRows" >> WriteToDatabase(settings["url"], "rows", create=True)
        case _:
            from penstock.io.kafka import WriteToKafka

            pairs = numbers | "Pairs" >> beam.Map(lambda number: (b"%d" % number, b"%d" % number))
            brokers = {"bootstrap.servers": settings["target_brokers"]}
            return pairs | "WriteTopic" >> WriteToKafka(brokers, "rows", exactly_once=True, transactions=1)


def write_lines(lines: Any, name: str, settings: dict[str, Any]) -> Any:
    """Lines into a table of the database if there is one, else into files."""
    if settings.get("url"):
        from penstock.io.database import WriteToDatabase

        rows = lines | f"{name}Rows" >> beam.Map(Line).with_output_types(Line)
        return rows | f"{name}Table" >> WriteToDatabase(settings["url"], name, create=True)
    return lines | f"{name}Files" >> beam.io.WriteToText(f"{settings['folder']}/disk/{name}/{name}")


def build(settings: dict[str, Any], *flags: str) -> beam.Pipeline:
    """Rows, windows with early panes, and a state, of one stream."""
    options = [f"--checkpoint_location={settings['folder']}/checkpoint", "--mode=streaming"]
    options += ["--shuffle_partitions=2", "--fast_start", "--take_over"]
    pipeline = beam.Pipeline(options=PipelineOptions([*options, *flags]))
    numbers = read(pipeline, settings)
    for sink in settings["sinks"]:
        write(numbers, sink, settings)
    pairs = numbers | beam.Map(lambda number: (number % KEYS, number)).with_output_types(tuple[int, int])
    panes = AfterWatermark(early=AfterCount(7))
    windows = beam.WindowInto(FixedWindows(WINDOW_SECONDS), panes, AccumulationMode.DISCARDING)
    write_lines(pairs | windows | beam.GroupByKey() | beam.MapTuple(pane), "panes", settings)
    write_lines(pairs | beam.ParDo(Steps()), "steps", settings)
    return pipeline


def main(folder: str, *flags: str) -> None:
    """Runs until it is told to drain."""
    settings = json.loads(Path(folder, "settings.json").read_text())
    if settings["traps"]:
        from tests.fire.traps import set_up

        set_up(Path(folder))
    result: Any = build(settings, *flags).run()
    while result.wait_until_finish(duration=200) is None:
        if Path(folder, "drain").exists():
            result.drain()


if __name__ == "__main__":
    main(*sys.argv[1:])
