"""Makes the streaming DataFrame of a PCollection, whose query the program starts itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from penstock.error import UnsupportedByRunner, refusal
from penstock.options.spark import SparkOptions
from penstock_spark.checkpoints.contract.signature import signature_of
from penstock_spark.checkpoints.plan_in_state import plan_in_state
from penstock_spark.lowering.query import compute_views, heartbeat_of
from penstock_spark.lowering.streaming_frame import lower_frame
from penstock_spark.passes.one_operator import one_operator
from penstock_spark.plan.stream_plan import StreamPlan
from penstock_spark.plan.unfollowed import refusals_of
from penstock_spark.reports.reporting import reports_of
from penstock_spark.reports.spark_errors import raise_translated
from penstock_spark.runs.execute import context_for
from penstock_spark.runs.open_session import OpenSession, with_packages
from penstock_spark.session.meaning import SQL_MEANING
from penstock_spark.session.unheard_reports import Unheard

_PARTITIONS = "spark.sql.shuffle.partitions"
_STORE = "spark.sql.streaming.stateStore.providerClass"
_STORE_OF_PAGES = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_ALWAYS = {**SQL_MEANING, "spark.sql.execution.arrow.useLargeVarTypes": "false"}
"""The settings that a query needs, and the values that they have in a new session of Spark."""

_OF_RUNS = {
    "checkpoint_location": "name the folder with writeStream.option('checkpointLocation', ...)",
    "trigger_interval": "pass it to writeStream.trigger(processingTime=...)",
    "available_now": "pass it to writeStream.trigger(availableNow=True)",
    "take_over": "stop the other query before you start this one",
    "drain_on_signal": "stop the query with query.stop(); the next one continues",
    "record_events": "record them in a run",
}
"""The options that only a run obeys, and what does the same for a query of the program."""


class ProgramSession(OpenSession):
    """The program's own session, by whose settings its queries run, and open sources."""

    @cached_property
    def session(self) -> SparkSession:
        return with_packages(self.spark)

    @cached_property
    def partitions(self) -> int:
        return int(self.spark.conf.get(_PARTITIONS) or 0)


def check_options(settings: SparkOptions, where: str) -> None:
    """Refuses options that only a run obeys."""
    for name, instead in _OF_RUNS.items():
        if getattr(settings, name, None):
            what = f"the option {name} is for runs, and the program itself starts the query of a streaming DataFrame"
            raise refusal(ValueError, what, where=where, hint=f"leave it out, and {instead}")


def streaming_frame(
    plan: StreamPlan, settings: SparkOptions, opened: ProgramSession, where: str
) -> DataFrame:
    """Returns the rows of the only sink of a plan as a streaming DataFrame of the program's session.

    Args:
        plan: The plan.
        settings: The options of the pipeline.
        opened: The session, and sources that were opened to make the plan.
        where: The step that asks for it.
    """
    for step, what, hint in refusals_of(plan):
        raise UnsupportedByRunner(what, where=step.where, hint=hint)
    _check_session(opened.spark, bool(plan.levels), settings, where)
    context = context_for(plan.all_steps, opened, settings)
    plan = one_operator(plan, context.partitions, context.without)
    heartbeat = heartbeat_of(plan, has_interval=False)
    signature = {"spark": context.spark.version, **signature_of(plan, context.partitions, heartbeat)}
    try:
        with reports_of(context.reporting):
            if plan.views is not None:
                compute_views(plan, context)
            # A task that runs again, also after a restart, has the same random numbers.
            context.seed = hashlib.blake2b(json.dumps(signature["steps"]).encode(), digest_size=6).hexdigest()
            context.metrics = Unheard()
            context.kept_plan = plan_in_state(signature, tuple(settings.drop_state or ()))
            return lower_frame(replace(plan, views=None), context, heartbeat)
    except Exception as error:
        raise_translated(error, context.surroundings(plan.all_steps))


def without_spark_state(
    plan: StreamPlan, opened: OpenSession, compiled: Callable[[], StreamPlan]
) -> StreamPlan:
    """Returns the plan, or the one of `compiled` if Spark's own operators would need what only a run does.

    Spark's aggregates do not say to which plan their state belongs, and the driver of a run looks at files before Spark
    reads their columns.
    """
    reads_files = any(scan.check_files is not None for scan in opened.streams.values())
    is_by_spark = plan.by_spark is not None or plan.columns is not None
    return compiled() if plan.by_spark is not None or (is_by_spark and reads_files) else plan


def _check_session(spark: SparkSession, has_state: bool, settings: SparkOptions, where: str) -> None:
    """Refuses a session with settings that the query cannot run with."""
    needed = {**_ALWAYS, **({_STORE: _STORE_OF_PAGES} if has_state else {})}
    wrong = {name: value for name, value in needed.items() if spark.conf.get(name) != value}
    asked = settings.shuffle_partitions
    if asked and spark.conf.get(_PARTITIONS) != str(asked):
        wrong[_PARTITIONS] = str(asked)
    if wrong:
        named = ", ".join(wrong)
        what = f"a query of a streaming DataFrame uses the settings of your session, and needs other values of {named}"
        lines = "; ".join(f"spark.conf.set({name!r}, {value!r})" for name, value in wrong.items())
        raise refusal(
            ValueError, what, where=where, hint=f"call {lines} first; or set them where Spark starts"
        )
