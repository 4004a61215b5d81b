"""The workloads as Beam pipelines; which package they are built with is an argument, since the names are the same."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from totals import GAP_SECONDS, HOUR_SECONDS, WINDOW_SECONDS


def run(beam: Any, pipeline: Any, job: str, source: str, target: str) -> None:
    """Runs a job from a text file to a folder of text files, with ``penstock`` or ``apache_beam``."""
    with pipeline:
        lines = pipeline | beam.io.ReadFromText(source)
        _ = JOBS[job](beam, lines) | beam.io.WriteToText(f"{target}/part")


def word_count(beam: Any, lines: Any) -> Any:
    """Counts every word."""
    return (
        lines
        | beam.FlatMap(str.split)
        | beam.combiners.Count.PerElement()
        | beam.MapTuple(lambda word, count: f"{word}\t{count}")
    )


def team_sums(beam: Any, lines: Any) -> Any:
    """Sums the scores of each team for every two minutes of event time."""
    timestamped = beam.window.TimestampedValue

    def parse(line: str) -> Any:
        _, team, score, seconds = line.split(",")
        return timestamped((team, int(score)), int(seconds))

    return (
        lines
        | beam.Map(parse)
        | beam.WindowInto(beam.window.FixedWindows(WINDOW_SECONDS))
        | beam.CombinePerKey(sum)
        | _shown(beam)
    )


def user_sessions(beam: Any, lines: Any) -> Any:
    """Sums the scores of each session of a user; it ends a minute after its last event."""
    return (
        _by_user(beam, lines)
        | beam.WindowInto(beam.window.Sessions(GAP_SECONDS))
        | beam.CombinePerKey(sum)
        | _shown(beam)
    )


def user_hours(beam: Any, lines: Any) -> Any:
    """Keeps a total and a timer for each user and hour; when the hour is over, the timer emits the total."""
    state = importlib.import_module(f"{beam.__name__}.transforms.userstate")
    ended = state.TimerSpec("ended", beam.TimeDomain.WATERMARK)
    total = state.ReadModifyWriteStateSpec("total", beam.coders.VarIntCoder())

    class TotalOfHour(beam.DoFn):  # type: ignore[misc, name-defined]
        def process(
            self,
            element: tuple[str, int],
            window: Any = beam.DoFn.WindowParam,
            so_far: Any = beam.DoFn.StateParam(total),
            timer: Any = beam.DoFn.TimerParam(ended),
        ) -> None:
            before = so_far.read()
            if before is None:
                timer.set(window.end)
            so_far.write((before or 0) + element[1])

        @state.on_timer(ended)
        def give(
            self,
            user: str = beam.DoFn.KeyParam,
            window: Any = beam.DoFn.WindowParam,
            so_far: Any = beam.DoFn.StateParam(total),
        ) -> Iterator[tuple[str, int]]:
            yield f"{user} {int(window.start)}", so_far.read()

    return (
        _by_user(beam, lines)
        | beam.WindowInto(beam.window.FixedWindows(HOUR_SECONDS))
        | beam.ParDo(TotalOfHour())
        | beam.MapTuple(lambda name, total: f"{name}\t{total}")
    )


def _by_user(beam: Any, lines: Any) -> Any:
    timestamped = beam.window.TimestampedValue

    def parse(line: str) -> Any:
        user, _, score, seconds = line.split(",")
        return timestamped((user, int(score)), int(seconds))

    return lines | beam.Map(parse)


def _shown(beam: Any) -> Any:
    """The lines of sums by key and window."""

    def show(key_sum: tuple[str, int], window: Any = beam.DoFn.WindowParam) -> str:
        return f"{key_sum[0]} {int(window.start)}\t{key_sum[1]}"

    return beam.Map(show)


JOBS = {
    "word_count": word_count,
    "team_sums": team_sums,
    "user_sessions": user_sessions,
    "user_hours": user_hours,
}
