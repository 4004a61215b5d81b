"""Looks at a batch while it runs."""

from __future__ import annotations

from penstock.base import clock
from penstock.diagrams.steps import steps_of
from penstock.live.snapshot import RunSnapshot, Stages
from penstock.options.spark import SparkOptions
from penstock.runners.runner import PipelineState
from penstock_spark.lowering.context import Context
from penstock_spark.plan.batch_plan import Plan
from penstock_spark.runs.looking import errors_of
from penstock_spark.runs.spark_stages import SparkStages, stages_in


class BatchLook:
    """Makes snapshots of a batch; what takes time is done at the first look, so that a short run does not pay for it.

    Args:
        context: The context of the run.
        plan: Its plan.
        settings: Its options.
        tag: The tag of its jobs.
    """

    def __init__(self, context: Context, plan: Plan, settings: SparkOptions, tag: str) -> None:
        self._context = context
        self._plan = plan
        self._name = settings.app_name or ""
        self._tag = tag
        self._began_micros = clock.micros()
        self._stages: SparkStages | None = None
        self._state = PipelineState.RUNNING
        self._failure: BaseException | None = None
        self._ended_micros: int | None = None
        self._last: tuple[Stages, int, int] | None = None

    def end(self, state: str, failure: BaseException | None = None) -> None:
        """Notes that the run is over."""
        self._state, self._failure, self._ended_micros = state, failure, clock.micros()

    def look(self) -> RunSnapshot:
        """What the run looks like now; asks Spark, unless nobody has looked before the run was over."""
        context = self._context
        if self._ended_micros is None:
            if self._stages is None:
                self._stages = stages_in(context.spark.sparkContext, self._tag)
            self._last = self._stages.look(context.at_work)
        elif self._last is not None and self._stages is not None:
            self._last = self._stages.look(context.at_work)
            self._stages = None
        part, parts, doing = context.at_work
        stages, rows, written = self._last or (Stages(doing, part, parts), None, None)
        now_micros = self._ended_micros or clock.micros()
        seconds = (now_micros - self._began_micros) / 1_000_000
        steps = steps_of(self._plan.graph)
        return RunSnapshot(
            str(self._name or context.spark.sparkContext.appName),
            context.run,
            "batch",
            self._state,
            self._began_micros,
            now_micros,
            # Spark counts what comes from files and tables: it knows nothing of values of the program.
            rows_in=rows or None,
            rows_out=written or None,
            rows_per_second=rows / seconds if rows and seconds > 0 else None,
            steps=steps,
            stages=stages,
            errors=errors_of(self._failure, steps) if self._state == PipelineState.FAILED else (),
        )
