"""The changes of a program between two runs on one checkpoint: the rows of the table of docs/streaming.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import penstock as beam
from penstock.io.watermarks import BoundedDisorder, IdleTimeout, OrderedPartitions
from penstock.testing.test_stream import TestStream
from penstock.transforms.combiners import MeanCombineFn
from penstock.transforms.trigger import AfterCount
from penstock.transforms.window import FixedWindows
from tests.runner.checkpoint_plans import BASE, RETRACTING, Pipeline, grouped, lines, windowed, written

Signature = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """A program, and its next version.

    Attributes:
        old: The program that has made the checkpoint.
        new: The program that is started on it.
        dropped: The labels in ``drop_state``.
        also: Changes what is known of the old run, and of the new one, beside the programs.
    """

    old: Pipeline
    new: Pipeline
    dropped: tuple[str, ...] = ()
    also: Callable[[Signature, Signature], None] = lambda old, new: None

    def signatures(self) -> tuple[Signature, Signature]:
        old, new = self.old.signature(), self.new.signature()
        self.also(old, new)
        return old, new


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        change: What changes.
        answer: What becomes of it.
        goes_on: Changes with which the checkpoint is continued.
        refused: Changes that are refused, each with a part of what the refusal says.
        note: What a run says if it continues; None if it says nothing.
        is_rewritten: Whether Spark's part of the checkpoint is rewritten.
    """

    change: str
    answer: str
    goes_on: tuple[Change, ...] = ()
    refused: tuple[tuple[Change, str], ...] = ()
    note: str | None = None
    is_rewritten: bool = False


def to(new: Pipeline, *dropped: str) -> Change:
    return Change(BASE, new, dropped)


def between(**changes: Any) -> Change:
    return Change(windowed(), windowed(**changes))


def read(**arguments: Any) -> Pipeline:
    return replace(BASE, source=lines(event_time=float, **arguments))


def sparks(old: str, new: str) -> Callable[[Signature, Signature], None]:
    def note(before: Signature, after: Signature) -> None:
        before["spark"], after["spark"] = old, new

    return note


def coders(old: dict[str, Any], new: dict[str, Any]) -> Callable[[Signature, Signature], None]:
    """Other coders of keys, as a program registers them; the programs themselves are tested elsewhere."""

    def note(before: Signature, after: Signature) -> None:
        for signature, own in ((before, old), (after, new)):
            signature["levels"][0]["Sum"]["key_coders"] = own

    return note


def fields(old: list[str], new: list[str]) -> Callable[[Signature, Signature], None]:
    """Fields of the rows in the state; the programs themselves are tested elsewhere."""

    def note(before: Signature, after: Signature) -> None:
        for signature, own in ((before, old), (after, new)):
            signature["levels"][0]["Sum"]["fields"] = {"Visit": own}

    return note


def coder(name: str, own_form: bool = True) -> dict[str, Any]:
    return {"Angle": {"coder": name, "own_form": own_form}}


def newer(old: Signature, new: Signature) -> None:
    old["format"] += 1


def deeper(clicks: Any, sums: Any) -> None:
    """Two more groupings in a row, behind the first one of the pipeline."""
    more = sums | "Deep" >> beam.GroupByKey() | "Deep pairs" >> beam.Map(lambda pair: pair)
    _ = more | "Deeper" >> beam.GroupByKey() | "Show deeper" >> beam.Map(print)


LIVE = read(watermark=BoundedDisorder(60))
TWO = replace(LIVE, more_sources=("Names", "Ages"))

RETRACTS = windowed(accumulation_mode=RETRACTING)

ROWS = (
    Row(
        "different code of a DoFn; steps without state added, removed or renamed",
        "continues",
        (
            to(BASE),
            to(replace(BASE, step=repr)),
            to(replace(BASE, step=lambda one: one)),
            to(replace(BASE, step_label="Renamed")),
        ),
    ),
    Row(
        "such a step behind a grouping that retracts",
        "continues, with a note: a row that was written before stays if the step now drops its retraction",
        (Change(RETRACTS, replace(RETRACTS, step_label="Renamed")),),
        note="steps through which retractions pass have changed",
    ),
    Row(
        "a grouping added where its level exists",
        "continues; the grouping begins empty",
        (to(replace(BASE, more=grouped("More"))), to(replace(BASE, more=grouped("More", deep=True)))),
        note="'More' starts without state",
    ),
    Row(
        "a sink added or removed",
        "continues, with a note; if a micro-batch was interrupted, a removed sink keeps its part of the output",
        (to(replace(BASE, more=written("Out"))), Change(replace(BASE, more=written("Out")), BASE)),
        note="'Out'",
    ),
    Row(
        "a different path of a source, delay of a watermark, or timeout",
        "continues, with a note",
        (
            to(replace(BASE, source=TestStream().add_elements([("ann", 1)]))),
            Change(read(watermark=BoundedDisorder(60)), read(watermark=BoundedDisorder(5))),
            Change(read(watermark=BoundedDisorder(60)), read(watermark=IdleTimeout(BoundedDisorder(60), 9))),
        ),
        note="the source 'Clicks' has a different",
    ),
    Row(
        "a different `shuffle_partitions`",
        "continues; the state is [divided again](#when-the-state-is-rewritten)",
        (to(replace(BASE, shards=8)), to(replace(BASE, shards=1))),
        note="its state is distributed again, because the number of shards has changed",
        is_rewritten=True,
    ),
    Row(
        "more groupings in a row, after those that exist",
        "continues; the state is rewritten, and the new groupings begin empty",
        (to(replace(BASE, more=deeper)), Change(replace(BASE, top=False), BASE)),
        note="its state is rewritten, because the longest chain of groupings has a different length",
        is_rewritten=True,
    ),
    Row(
        "a source added",
        "continues; the state is rewritten, and the source is read from its beginning; with a `TestStream`, refused",
        (Change(LIVE, TWO),),
        ((to(replace(BASE, more_sources=("Names", "Ages"))), "the source 'Ages' is new"),),
        note="the source 'Ages' is read from its beginning",
        is_rewritten=True,
    ),
    Row(
        "sources in another order",
        "continues, with a note; the state is rewritten",
        (Change(TWO, replace(LIVE, more_sources=("Ages", "Names"))),),
        note="the sources are in a different order\n  - Names, Ages, Clicks\n  + Ages, Names, Clicks",
        is_rewritten=True,
    ),
    Row(
        "a source removed or renamed",
        "refused, unless `--drop_state=label` discards its position",
        (
            Change(TWO, LIVE, ("Ages",)),
            Change(TWO, replace(LIVE, more_sources=("Names", "Years")), ("Ages",)),
        ),
        (
            (Change(TWO, LIVE), "the source 'Ages' is missing"),
            (
                Change(TWO, replace(LIVE, more_sources=("Names", "Years"))),
                "if its label is 'Years' now, give it the old label again",
            ),
        ),
        note="the source 'Ages' is no longer read",
        is_rewritten=True,
    ),
    Row(
        "a grouping removed or renamed",
        "refused, unless `--drop_state=label` discards its state",
        (
            Change(replace(BASE, more=grouped("More")), BASE, ("More",)),
            to(replace(BASE, sum_label="Total", combine=MeanCombineFn()), "Sum"),
        ),
        (
            (Change(replace(BASE, more=grouped("More")), BASE), "pass drop_state=['More']"),
            (
                to(replace(BASE, sum_label="Total")),
                "if its label is 'Total' now, give it the old label again",
            ),
        ),
        note="is discarded",
    ),
    Row(
        "the last grouping of the longest chain removed",
        "the same; the state is rewritten",
        (to(replace(BASE, top=False), "Top"),),
        ((to(replace(BASE, top=False)), "pass drop_state=['Top']"),),
        note="the state of 'Top' is discarded",
        is_rewritten=True,
    ),
    Row(
        "a grouping added before an existing one",
        "refused: the state of a grouping belongs to its level",
        refused=(
            (
                Change(replace(BASE, more=grouped("More")), replace(BASE, more=grouped("More", deep=True))),
                "'More' is at a different level",
            ),
        ),
    ),
    Row(
        "different windows, triggers, lateness, CombineFn or mode",
        "refused",
        refused=(
            (between(windowfn=FixedWindows(61)), "'Sum' has other windows"),
            (between(trigger=AfterCount(4)), "'Sum' has another trigger"),
            (between(allowed_lateness=5), "'Sum' has another allowed lateness"),
            (between(accumulation_mode=RETRACTING), "'Sum' has another accumulation mode"),
            (to(replace(BASE, combine=MeanCombineFn())), "'Sum' has another CombineFn"),
            (to(replace(BASE, mode="micro_batch")), "the pipeline has a different mode"),
        ),
    ),
    Row(
        "a different kind of source, watermark or clock, or a different tick",
        "refused",
        refused=(
            (to(replace(BASE, source=beam.Create([1]))), "the source 'Clicks' has another kind"),
            (to(read(watermark=OrderedPartitions())), "the pipeline uses a different clock"),
            (
                Change(read(watermark=BoundedDisorder(60)), read(watermark=OrderedPartitions())),
                "estimates its watermark in a different way",
            ),
            (
                Change(
                    read(watermark=BoundedDisorder(60), arrival_time=float, tick=1),
                    read(watermark=BoundedDisorder(60), arrival_time=float, tick=2),
                ),
                "the source 'Clicks' has another tick",
            ),
        ),
    ),
    Row(
        "fields of a NamedTuple in the state, or of a row with a `RowCoder`, in a different order",
        "refused; with new fields at the end, continues",
        (Change(BASE, BASE, also=fields(["user", "page"], ["user", "page", "seconds"])),),
        (
            (
                Change(BASE, BASE, also=fields(["user", "page"], ["page", "user"])),
                "'Sum' has stored values of Visit by the position of their fields",
            ),
        ),
    ),
    Row(
        "a different coder registered for a type of the keys",
        "refused; a first coder is accepted if the type could not be a key without it",
        (Change(BASE, BASE, also=coders({}, coder("AngleCoder", own_form=False))),),
        (
            (
                Change(BASE, BASE, also=coders(coder("AngleCoder"), coder("OtherCoder"))),
                "the keys of 'Sum' have a different coder for Angle",
            ),
            (
                Change(BASE, BASE, also=coders({}, coder("AngleCoder"))),
                "the keys of 'Sum' have a different coder for Angle",
            ),
        ),
    ),
    Row(
        "an older Spark, or a later one after 4.0",
        "refused; otherwise [later ones](running.md#versions-of-spark) continue",
        (Change(BASE, BASE, also=sparks("4.1.4", "4.3.0")),),
        (
            (Change(BASE, BASE, also=sparks("4.3.0", "4.2.1")), "a newer Spark wrote it"),
            (Change(BASE, BASE, also=sparks("4.0.5", "4.1.4")), "Spark 4.0 wrote it"),
        ),
        note="an older Spark wrote it",
    ),
    Row(
        "a checkpoint of a different pipeline, or of a newer penstock",
        "refused",
        refused=(
            (
                to(replace(BASE, source_label="Views", sum_label="Count", top=False, more_sources=())),
                "it belongs to a different pipeline",
            ),
            (Change(BASE, BASE, also=newer), "wrote the plan of a checkpoint, in the format 2"),
        ),
    ),
)


def table() -> str:
    """The table as it stands in the page."""
    return "\n".join(["| change | |", "| --- | --- |", *(f"| {row.change} | {row.answer} |" for row in ROWS)])
