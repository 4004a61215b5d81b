"""Lists what a query that the program starts itself cannot have, because no driver follows it."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.graph import Read, Step
from penstock.io.external.generate_sequence import SequenceSource
from penstock.io.streaming.periodic_sequence import PeriodicSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock_spark.plan.signals import find_signals
from penstock_spark.plan.stream_plan import StreamPlan

_AS_STREAM = "read it with as_stream(...)"


def refusals_of(plan: StreamPlan) -> Iterator[tuple[Step, str, str]]:
    """Yields the steps of a plan that need more than Spark's checkpoint: the step, what is wrong, and what to do."""
    if plan.played is not None:
        what = "the program lists all of its elements, and so Spark has nothing to stream"
        yield plan.played.roots[0], what, "use to_dataframe() with mode='batch', or test with pipeline.run()"
    for part in plan.readings:
        [step] = part.roots
        assert isinstance(step.primitive, Read)
        source = step.primitive.source
        match source:
            case StreamSource(existing_only=True):
                what = (
                    "the end of a source fires the last windows, and the driver of a run alone sees the end"
                )
                hint = (
                    "leave out existing_only=True: then the last windows wait for later elements; or write in the "
                    "pipeline"
                )
                yield step, f"{what}; no driver follows the query of a streaming DataFrame", hint
            case StreamSource() | PeriodicSource() | SequenceSource():
                continue
            case _:
                what = (
                    "a run reads a bounded source into its checkpoint before the query starts, and a streaming "
                    "DataFrame has no such folder"
                )
                hint = f"{_AS_STREAM}, give it to a step as a side input, or write in the pipeline"
                yield step, what, hint
    if signals := find_signals(plan):
        names = ", ".join(sorted(signals))
        what = f"a trigger waits for the signal {names}, which only result.signal() of a run sends"
        step = next(step for level in plan.levels for step in level.roots)
        yield step, what, "use another trigger, or write in the pipeline"
