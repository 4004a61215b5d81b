"""A misspelled name has a hint at the name that is meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pytest

import penstock as beam
from penstock.checks.meant_names import hint_at_meant_name
from penstock.io.kafka import ReadFromKafka
from penstock.io.streaming.stream_times import PartOf


@pytest.mark.parametrize(
    ("make", "meant"),
    [
        (lambda: beam.io.ReadFromParquet("in", as_row=True), "as_rows"),
        (lambda: beam.io.WriteToText("out", file_name_sufix=".txt"), "file_name_suffix"),
        (lambda: beam.WindowInto(beam.window.FixedWindows(60), acumulation_mode=1), "accumulation_mode"),
        (lambda: beam.combiners.Top.Of(3, keey=len), "key"),
        (lambda: beam.Map(len).with_exception_handling(maintag="good"), "main_tag"),
        (lambda: beam.ParDo(len).with_outputs("bad", mian="good"), "main"),
        (lambda: beam.GroupIntoBatches(batchsize=3), "batch_size"),
    ],
    ids=["a source", "a sink", "windows", "a combiner", "a method", "tags", "a base class"],
)
def test_a_misspelled_keyword_has_a_hint(make, meant) -> None:
    with (
        pytest.raises(TypeError, match="got an unexpected keyword argument") as caught,
        beam.Pipeline() as pipeline,
    ):
        pipeline | beam.Create(["a"]) | make()
    assert caught.value.__notes__ == [f"  hint: did you mean {meant}?"]


def _own(*, limit: int = 1) -> int:
    return limit


@pytest.mark.parametrize(
    "call",
    [
        lambda: _own(limits=2),
        lambda: beam.Create([1], everything=3),
        lambda: len(3),
        lambda: int("x"),
    ],
    ids=["a function of the program", "nothing like it", "another TypeError", "another error"],
)
def test_other_errors_have_no_hint(call) -> None:
    with pytest.raises((TypeError, ValueError)) as caught, beam.Pipeline():
        call()
    assert not hasattr(caught.value, "__notes__")


def pipeline_rows() -> object:
    return beam.Pipeline() | beam.Create([beam.Row(team="red", at=3)])


@pytest.mark.parametrize(
    ("make", "meant"),
    [
        (lambda: beam.Pipeline(checkpoint_locaton="/a"), "checkpoint_location"),
        (lambda: beam.Pipeline(runner="SprkRunner").runner, "SparkRunner"),
        (lambda: beam.Pipeline(without=["lifted_combiner"]).run(), "'lifted_combiners'"),
        (lambda: beam.io.WriteToAvro("a", codec="bzip"), "'bzip2'"),
        (lambda: beam.io.WriteToOrc("a", codec="snapy"), "'snappy'"),
        (lambda: beam.io.ReadFromCsv("a", sepp=";"), "'sep'"),
        (lambda: beam.JoinRows("lefft"), "'left'"),
        (lambda: ReadFromKafka({}, ["a"], maxnum_records=3), "'max_num_records'"),
        (
            lambda: beam.io.ReadFromParquet(
                "a", as_rows=True, schema=NamedTuple("R", [("team", str)]), partition_by="teem"
            ),
            "'team'",
        ),
        (
            lambda: (pipeline_rows() | beam.ParDo(print).with_outputs("bad", main="good")).bda,
            "'bad'",
        ),
        (lambda: PartOf("event_time", "tme")({"time": 1}), "'time'"),
        (lambda: PartOf("event_time", "tme")(beam.Row(time=1)), "'time'"),
    ],
    ids=[
        *("an option", "a runner", "an optimisation", "a codec", "another codec", "an argument of pandas"),
        *("a kind of join", "an argument of Beam's", "a column of folders", "a tag", "a key", "a field"),
    ],
)
def test_a_misspelled_name_has_a_hint(make, meant) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)) as caught:
        make()
    assert f"hint: did you mean {meant}?" in str(caught.value)


def test_a_label_that_a_checkpoint_does_not_have_has_a_hint() -> None:
    signature = {"stages": [], "groupings": []}
    from penstock_spark.checkpoints.contract import compare

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "_with_state", lambda signature: {"Sum"})
        assert list(compare._unknown(signature, signature, ["Summ"])) == [
            "drop_state names 'Summ', which has no state in the checkpoint: did you mean 'Sum'?"
        ]


class Point(NamedTuple):
    across: int
    up: int


@dataclass
class Place:
    town: str


@pytest.mark.parametrize(
    ("read", "element", "hint"),
    [
        (lambda each: each.acros, Point(1, 2), "did you mean 'across'?"),
        (lambda each: each.zzz, Point(1, 2), "use one of across, up"),
        (lambda each: each.twon, Place("a"), "did you mean 'town'?"),
        (lambda each: each["taem"], {"team": 1}, "did you mean 'team'?"),
        (lambda each: each[1][0]["taem"], (1, ({"team": 1},)), "did you mean 'team'?"),
        (lambda each: each["zzz"], {"team": 1}, None),
        (lambda each: each.uper(), "a", "did you mean 'upper'?"),
        (lambda each: each[3], {"team": 1}, None),
        (lambda each: beam.Create([each], reshufle=True), 1, "did you mean 'reshuffle'?"),
    ],
    ids=[
        "a tuple",
        "no field",
        "a dataclass",
        "a key",
        "a deep key",
        "no key",
        "a method",
        "a number",
        "a keyword",
    ],
)
def test_an_error_of_a_function_hints_at_what_the_element_has(read, element, hint) -> None:
    with pytest.raises((AttributeError, KeyError, TypeError)) as caught:
        read(element)
    assert hint_at_meant_name(caught.value, (element,)) == hint
