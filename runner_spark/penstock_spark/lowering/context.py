"""The context of lowering: the session, the frames made so far, and everything to be cleaned up."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Callable, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from penstock.graph import Graph, Step, Write
from penstock_spark.formats.registry import plan_sink
from penstock_spark.lowering.frames import select
from penstock_spark.lowering.once_more import rerun_if_given_up
from penstock_spark.plan.batch_plan import OutputReference
from penstock_spark.reports.reporting import Reporting
from penstock_spark.reports.spark_errors import ErrorContext
from penstock_spark.session.backends import backend_of
from penstock_spark.sinks.plan import SinkPlan
from penstock_spark.sources.scan import Scan as Source
from penstock_spark.sources.scan import StreamScan
from penstock_spark.stream.program import PlanInState
from penstock_spark.worker.batch import dumps_with_code

if TYPE_CHECKING:
    from penstock_spark.session.backend import Backend, TaskReports

_LOGGER = logging.getLogger(__name__)

INLINE_VALUES = 1_000
"""The number of in-memory values that justifies another task."""


@dataclass
class Context:
    spark: SparkSession
    run: str
    metrics: TaskReports  # The reports of tasks to the driver.
    partitions: int  # The number of partitions of every shuffle.
    dumps: Callable[[Any], bytes]  # Pickles a program for the workers.
    inline_values: int = INLINE_VALUES  # The largest number of in-memory values in one bundle.
    reporting: Reporting = field(default_factory=Reporting)
    seed: str = ""  # What the random numbers of tasks depend on: the run, or the checkpoint of a stream.
    kept_plan: PlanInState | None = None  # The plan of a stream that its shards keep, if no folder keeps it.
    without: Set[str] = frozenset()  # The optimisations that are switched off.
    recorded: int = 0  # How many elements and panes of each grouping a worker records in a micro-batch.
    watched: bool = False  # Whether workers count panes, and the elements of all steps, for a view.
    counts_columns: bool = False  # Whether Spark counts the rows that a batch writes without Python.
    counted_columns: dict[str, int] = field(default_factory=dict)  # These numbers, by the label of the sink.
    sys_path: tuple[str, ...] = ()  # Folders that local workers should import from too.
    scans: dict[str, Source] = field(default_factory=dict)  # The opened sources, by label.
    streams: dict[str, StreamScan] = field(default_factory=dict)  # The opened streams, likewise.
    # The planned sinks, by label: a plan names the files that its encoders write.
    sinks: dict[str, SinkPlan] = field(default_factory=dict)
    frames: dict[int, DataFrame] = field(default_factory=dict)  # The output frame of each stage, by number.
    outputs: dict[int, int] = field(default_factory=dict)  # The number of outputs of each stage.
    views: dict[int, Any] = field(default_factory=dict)  # Broadcast side inputs, by edge.
    written: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # The results of each write, by label.
    tidy: list[Callable[[], Any]] = field(default_factory=list)  # Functions to call when the run is over.
    # The number of the part of a batch that runs, the number of all parts, and the labels of its steps.
    at_work: tuple[int, int, str] = (0, 0, "")
    # The number of the first stage in metrics, where each stage of the run has a number.
    first_stage: int = 0
    places: tuple[str, ...] = ()  # The steps that Spark is running, as the second lines of errors.
    computed: tuple[str, ...] = ()  # The steps whose values Spark computes, in the same form.

    @property
    def backend(self) -> Backend:
        return backend_of(self.spark)

    def for_another_plan(self, first_stage: int) -> Context:
        """Returns the context of another plan of the same run, whose stages and edges have numbers of their own."""
        return replace(
            self, scans={}, sinks={}, frames={}, outputs={}, views={}, written={}, first_stage=first_stage
        )

    def tidy_up(self) -> None:
        """Frees the resources of the run; those that cannot be freed, for example after Java died, are gone anyway."""
        while self.tidy:
            try:
                self.tidy.pop()()
            except Exception as error:
                _LOGGER.debug("cannot free what a run has made: %s", error)

    def surroundings(self, graph: Graph) -> ErrorContext:
        """Returns the facts that explain an error that Spark raises now."""
        unreadable = partial(unreadable_step, graph)
        return ErrorContext(self.reporting, graph, self.places, computed=self.computed, unreadable=unreadable)

    def sink(self, step: Step) -> SinkPlan:
        if step.label not in self.sinks:
            assert isinstance(step.primitive, Write)
            plan = plan_sink(step.primitive.sink, step.where)
            self.sinks[step.label] = plan
            if plan.close is not None:
                self.tidy.append(plan.close)
        return self.sinks[step.label]

    def keep(self, stage: int, frame: DataFrame, outputs: int, is_made: bool = False) -> None:
        """Stores a stage's frame; computes and persists it now if it has several readers and is not made yet."""
        self.outputs[stage] = outputs
        if outputs > 1 and not is_made:
            frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
            self.tidy.append(frame.unpersist)
            rerun_if_given_up(frame, run_only, _persist_again)
        self.frames[stage] = frame

    def read(self, reference: OutputReference, columns: tuple[str, ...]) -> DataFrame:
        frame = self.frames[reference.stage]
        if self.outputs[reference.stage] > 1:
            frame = frame.where(frame["output"] == reference.output)
        return select(frame, columns)

    def read_all(self, references: tuple[OutputReference, ...], columns: tuple[str, ...]) -> DataFrame:
        first, *others = [self.read(reference, columns) for reference in references]
        for other in others:
            first = first.unionAll(other)
        return first


def _persist_again(frame: DataFrame) -> DataFrame:
    return frame.unpersist().persist(StorageLevel.MEMORY_AND_DISK)


def run_only(frame: DataFrame) -> None:
    """Runs a frame for its side effects, and drops its rows."""
    frame.write.format("noop").mode("overwrite").save()


def unreadable_step(graph: Graph | None, said: str) -> str | None:
    """Returns the place of the first step that cannot be read again, for the same reason as in the worker.

    A worker reads a whole stage, so it does not know the step. Each step is written and read here, one by one, which
    is only worth its time once a worker has failed.

    Args:
        graph: The pipeline, if it is known.
        said: The last line of the worker's traceback.
    """
    for step in graph.steps if graph else ():
        try:
            pickle.loads(dumps_with_code(step.primitive))
        except Exception as error:
            if traceback.format_exception_only(error)[0].strip() == said.strip():
                return step.where
    return None
