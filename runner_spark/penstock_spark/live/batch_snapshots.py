"""Looks at a batch while it runs."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace

from penstock.diagrams.steps import steps_of
from penstock.metrics.execution import ELEMENTS, Snapshot, take_out
from penstock.options.spark import SparkOptions
from penstock.runners.runner import PipelineState
from penstock.utils import clock
from penstock_spark.live.elements import (
    Counts,
    Flow,
    StepElements,
    add_counts,
    choose_counts_for_rate,
    composites_of,
    edges_into,
    elements_of,
    flows_of,
    flows_of_sinks,
)
from penstock_spark.live.settings import machine_facts, settings_of
from penstock_spark.live.snapshot import RunSnapshot, Stages
from penstock_spark.live.spark_stages import SparkStages, stages_in
from penstock_spark.live.stream_snapshots import errors_of, sinks_of
from penstock_spark.live.throughput import Throughput, add_work
from penstock_spark.lowering.context import Context
from penstock_spark.plan.batch_plan import Plan, Query
from penstock_spark.reports.metrics import copy_snapshots
from penstock_spark.session.backends import backend_of


class Totals:
    """The number of elements that edges have carried, added up as tasks end; a task that runs again counts once.

    Args:
        edges: The edges that workers count.
    """

    def __init__(self, edges: Iterable[int]) -> None:
        self._by_edge = dict.fromkeys(edges, 0)
        self._seen: dict[Hashable, Snapshot] = {}

    def see(self, held: Mapping[tuple[str, int, Hashable], Snapshot]) -> dict[int, int]:
        """Returns the totals with the snapshots of partitions that are new, or that have been replaced."""
        for key, snapshot in held.items():
            before = self._seen.get(key)
            if before is not snapshot:
                self._add(snapshot, 1)
                self._add(before or {}, -1)
                self._seen[key] = snapshot
        return dict(self._by_edge)

    def _add(self, snapshot: Snapshot, sign: int) -> None:
        for edge, count in take_out(snapshot, ELEMENTS)[1].items():
            self._by_edge[int(edge)] = self._by_edge.get(int(edge), 0) + sign * count


class BatchSnapshots:
    """Makes snapshots of a batch; slow work waits for the first look, so that a short run does not pay for it.

    Args:
        context: The context of the run.
        plan: Its plan.
        settings: Its options.
        tag: The tag of its jobs.
        is_watched: Whether its workers count the elements of all steps, and not only those of sources and sinks.

    Attributes:
        counted: The edges whose elements its workers count.
    """

    def __init__(
        self, context: Context, plan: Plan, settings: SparkOptions, tag: str, is_watched: bool = False
    ) -> None:
        self._context = context
        self._plan = plan
        self._name = settings.app_name or ""
        self._tag = tag
        self._asks_at_end = settings.progress == "always"
        self._began_micros = clock.micros()
        self._stages: SparkStages | None = None
        self._state = PipelineState.RUNNING
        self._failure: BaseException | None = None
        self._ended_micros: int | None = None
        self._last: tuple[Stages, int, int] | None = None
        sinks = flows_of_sinks(plan.graph)
        self._flows = flows_of(plan.graph) if is_watched else sinks
        self._composites = composites_of(self._flows) if is_watched else ()
        self._scanned: frozenset[int] = frozenset().union(*(stage.scanned_edges for stage in plan.stages))
        made: frozenset[int] = frozenset().union(*(stage.made_edges for stage in plan.stages))
        self.counted = self._scanned | (made if is_watched else made & edges_into(sinks))
        self._totals = Totals(self.counted)
        # The thread of the run counts at its end, when another thread may still look.
        self._counting = threading.Lock()
        self._marks: tuple[Counts, ...] = (Counts(self._began_micros, {}),)
        self._places = {step.label: step.where for step in plan.graph.steps}
        self._throughput = Throughput()
        self._looked = (self._began_micros, 0)  # The time of the last look, and the rows by then.
        self._options = settings if is_watched else None
        self._facts: tuple[dict[str, str], str] | None = None

    def end(self, state: str, failure: BaseException | None = None) -> None:
        """Notes that the run is over."""
        self._count()
        self._state, self._failure, self._ended_micros = state, failure, clock.micros()

    def look(self) -> RunSnapshot:
        """Returns the present state of the run.

        A first look after the end of the run asks Spark only with ``--progress=always``.
        """
        context = self._context
        if self._ended_micros is None or (self._last is None and self._asks_at_end):
            self._count()
            if self._stages is None:
                self._stages = stages_in(context.spark, self._tag)
            self._last = self._stages.look(context.at_work)
        elif self._last is not None and self._stages is not None:
            self._last = self._stages.look(context.at_work)
            self._stages = None
        part, parts, doing = context.at_work
        stages, by_spark, written = self._last or (Stages(doing, part, parts), 0, 0)
        rows = self._rows(by_spark)
        now_micros = self._ended_micros or clock.micros()
        seconds = (now_micros - self._began_micros) / 1_000_000
        steps = steps_of(self._plan.graph)
        elements = self._elements(self._flows, now_micros)
        facts, page = self._look_at_facts()
        return RunSnapshot(
            str(self._name or backend_of(context.spark).app_name),
            context.run,
            "batch",
            self._state,
            self._began_micros,
            now_micros,
            rows_in=rows or None,
            rows_out=written or None,
            rows_per_second=rows / seconds if rows and seconds > 0 else None,
            steps=steps,
            elements=elements,
            composites=self._elements(self._composites, now_micros),
            stages=stages,
            errors=errors_of(self._failure, steps, self._places)
            if self._state == PipelineState.FAILED
            else (),
            throughput=self._note_rows(rows or None, now_micros),
            sinks=tuple(
                replace(sink, elements_in=context.counted_columns.get(sink.label, sink.elements_in))
                for sink in sinks_of(steps, elements)
            ),
            settings=facts,
            spark_page=page,
        )

    def _look_at_facts(self) -> tuple[dict[str, str], str]:
        """Returns the settings and Spark's own page, which cost questions to Java: only a view asks."""
        if self._facts is None and self._options is not None:
            backend = backend_of(self._context.spark)
            machine = machine_facts(backend.version, backend.parallelism())
            self._facts = {**machine, **settings_of(self._options)}, backend.page
        return self._facts or ({}, "")

    def _note_rows(self, rows: int | None, now_micros: int) -> Throughput:
        """Returns the rows over time, with those since the last look."""
        since_micros, before = self._looked
        if rows is not None and now_micros > since_micros:
            self._throughput = add_work(self._throughput, since_micros, now_micros, max(0, rows - before))
            self._looked = (now_micros, rows)
        return self._throughput

    def _rows(self, by_spark: int) -> int | None:
        """Returns the number of rows that the sources have emitted; None if it is not counted.

        Workers count what they read. Spark counts what it reads itself, which may be a row for a whole file, and also
        counts what it has kept and reads again. Neither counts the values of the program.
        """
        stages = self._plan.stages
        if not any(isinstance(stage.root, Query) for stage in stages):
            return sum(self._marks[-1].by_edge.get(edge, 0) for edge in self._scanned)
        is_read_once = not self._scanned and all(len(stage.outputs) <= 1 for stage in stages)
        return by_spark if is_read_once else None

    def _count(self) -> None:
        """Notes what tasks that have ended have counted."""
        if not self.counted:
            return
        with self._counting:
            held = copy_snapshots(self._context.metrics, self._context.run)
            by_edge = self._totals.see(held)
            if by_edge != self._marks[-1].by_edge:
                self._marks = add_counts(self._marks, Counts(clock.micros(), by_edge))

    def _elements(self, flows: tuple[Flow, ...], at_micros: int) -> tuple[StepElements, ...]:
        if self._ended_micros is None:
            return elements_of(flows, *choose_counts_for_rate(self._marks, at_micros))
        now = Counts(at_micros, self._marks[-1].by_edge)
        return elements_of(flows, now, Counts(self._began_micros, {}))
