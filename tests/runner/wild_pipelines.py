"""Pipelines made at random of whatever fits together for its author: a runner may refuse them, but only by name."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import penstock as beam
from penstock.pvalue import AsDict, AsIter, AsList, AsMultiMap, AsSingleton
from penstock.relations.changelog import Changelog
from penstock.relations.joins import JoinRows
from penstock.relations.upserts import Upserts
from penstock.testing.test_stream import TestStream
from penstock.transforms.deduplicate import Deduplicate
from penstock.transforms.periodicsequence import PeriodicImpulse
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterAny,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    DefaultTrigger,
    Repeatedly,
)
from tests.runner.random_pipelines import (
    WINDOWS,
    AtTheEnd,
    CountUp,
    Seen,
    keyed,
    later,
    risky,
    signed,
    spread_over,
)

TRIGGERS = (
    DefaultTrigger(),
    Repeatedly(AfterCount(2)),
    AfterWatermark(early=AfterCount(1), late=AfterCount(1)),
    AfterWatermark(),
    Repeatedly(AfterAny(AfterCount(3), AfterProcessingTime(5))),
)


class Endless(CountUp):
    """Work on an element that may never end."""

    @beam.DoFn.unbounded_per_element()
    def process(self, element: int, tracker: Any = CountUp.process.__defaults__[0]) -> Any:  # type: ignore[index]
        yield from super().process(element, tracker)


class CountUpWith(CountUp):
    def process(self, element: int, side: Any, tracker: Any = CountUp.process.__defaults__[0]) -> Any:  # type: ignore[index]
        yield from super().process(element, tracker)


class AtTheEndWith(AtTheEnd):
    def process(self, element: Any, side: Any, kept: Any = beam.DoFn.StateParam(AtTheEnd.KEPT)) -> Any:
        kept.add(element[1])


def _windows(at: Random) -> Any:
    return beam.WindowInto(
        at.choice(tuple(WINDOWS.values())),
        trigger=at.choice(TRIGGERS),
        accumulation_mode=at.choice(tuple(AccumulationMode)),
        allowed_lateness=at.choice((0, 0, 5)),
    )


def _lines(**arguments: Any) -> Any:
    return beam.io.ReadFromText("/in/*.txt", validate=False).as_stream(**arguments)


SOURCES: dict[str, Callable[[], Any]] = {
    "create": lambda: beam.Create([1, 2, 3]),
    "empty": lambda: beam.Create([]),
    "recorded": lambda: TestStream().add_elements([1]).advance_watermark_to(5).add_elements([7]),
    "lines": _lines,
    "finite lines": lambda: _lines(existing_only=True),
    "file": lambda: beam.io.ReadFromText("/in/*.txt", validate=False),
    "impulse": PeriodicImpulse,
}

BOUNDED = ("create", "empty", "file")

Wild = Callable[[Random, Any, list[Any]], Any]

OPERATIONS: dict[str, Wild] = {
    "map": lambda at, x, made: x | beam.Map(lambda n: n),
    "key": lambda at, x, made: (
        x | beam.Map(keyed).with_input_types(Any).with_output_types(beam.typehints.KV[int, int])
    ),
    "windows": lambda at, x, made: x | _windows(at),
    "group": lambda at, x, made: x | beam.GroupByKey(),
    "sum": lambda at, x, made: x | beam.CombinePerKey(sum),
    "late data": lambda at, x, made: x | beam.CombinePerKey(sum).with_late_data(),
    "hot keys": lambda at, x, made: x | beam.CombinePerKey(sum).with_hot_key_fanout(2),
    "total": lambda at, x, made: x | beam.CombineGlobally(sum),
    "no default": lambda at, x, made: x | beam.CombineGlobally(sum).without_defaults(),
    "view": lambda at, x, made: (
        x | beam.Map(lambda n, m: n, beam.CombineGlobally(sum).as_singleton_view().expand(at.choice(made)))
    ),
    "flatten": lambda at, x, made: (x, at.choice(made), at.choice((x, at.choice(made)))) | beam.Flatten(),
    "cogroup": lambda at, x, made: {"a": x, "b": at.choice(made)} | beam.CoGroupByKey(),
    "join": lambda at, x, made: (x, at.choice(made)) | JoinRows(at.choice(("inner", "left", "full"))),
    "shuffle": lambda at, x, made: x | beam.Reshuffle(),
    "outputs": lambda at, x, made: tuple(
        x | beam.FlatMap(spread_over, 1).with_input_types(Any, int).with_outputs("odd", "third", main="all")
    ),
    "reject": lambda at, x, made: x | beam.Map(risky).with_input_types(Any).with_exception_handling(),
    "later": lambda at, x, made: x | beam.Map(later).with_input_types(Any),
    "state": lambda at, x, made: x | beam.ParDo(AtTheEnd()),
    "deduplicate": lambda at, x, made: x | Deduplicate(processing_time_duration=5),
    "batches": lambda at, x, made: x | beam.GroupIntoBatches(2, max_buffering_duration_secs=5),
    "split": lambda at, x, made: x | beam.ParDo(CountUp()).with_input_types(Any),
    "endless": lambda at, x, made: x | beam.ParDo(Endless()).with_input_types(Any),
    "metric": lambda at, x, made: x | beam.ParDo(Seen()).with_input_types(Any),
    "changes": lambda at, x, made: x | Changelog(),
    "signed": lambda at, x, made: x | Changelog() | "Signed" >> beam.Map(signed),
    "upserts": lambda at, x, made: x | Upserts(),
    "memory": lambda at, x, made: x | beam.io.WriteToMemory([]),
    "text": lambda at, x, made: (
        x | beam.io.WriteToText(f"/out/{len(made)}", triggering_frequency=at.choice((None, 60)))
    ),
    "iter": lambda at, x, made: x | beam.Map(lambda n, s: n, AsIter(at.choice(made))),
    "list": lambda at, x, made: x | beam.Map(lambda n, s: n, AsList(x)),
    "singleton": lambda at, x, made: x | beam.Map(lambda n, s: n, AsSingleton(at.choice(made), 1)),
    "dict": lambda at, x, made: x | beam.Map(lambda n, s: n, AsDict(at.choice(made))),
    "state and view": lambda at, x, made: x | beam.ParDo(AtTheEndWith(), AsMultiMap(at.choice(made))),
    "split and view": lambda at, x, made: (
        x | beam.ParDo(CountUpWith(), AsIter(at.choice(made))).with_input_types(Any, Any)
    ),
}


def wild_pipeline(
    seed: int, size: int, refused: Callable[[Exception], None], **options: Any
) -> beam.Pipeline:
    """A pipeline of what was not refused while it was built; `refused` sees each refusal."""
    at = Random(seed)
    pipeline = beam.Pipeline(auto_unique_labels=True, **options)
    sources = BOUNDED if options.get("mode") == "batch" else tuple(SOURCES)
    kinds = at.sample(sources, at.choice((1, 2, 2)))
    made = [pipeline | f"Source {kind}" >> SOURCES[kind]() for kind in kinds]
    for _ in range(size):
        x, name = at.choice(made[-4:]), at.choice(tuple(OPERATIONS))
        chosen = Random(at.random())
        try:
            given = OPERATIONS[name](chosen, x, made)
        except Exception as error:
            refused(error)
            continue
        made += [
            each
            for each in (given if isinstance(given, tuple) else (given,))
            if isinstance(each, beam.PCollection)
        ]
    return pipeline
