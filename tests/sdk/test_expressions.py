"""Expressions: what they compute, how None passes through them, and how transforms read them."""

from __future__ import annotations

import datetime
import operator
import pickle
from typing import NamedTuple

import pytest

import penstock as beam
from penstock import field
from penstock.elements.row import Row
from penstock.scalars.field_functions import RowInWindow
from penstock.transforms.window import TimestampedValue
from penstock.typehints import row_type

A, B = field("a"), field("b")


class Score(NamedTuple):
    team: str
    points: int


@pytest.mark.parametrize(
    ("expression", "a", "b", "value"),
    [
        (A + B, 2, 3, 5),
        (A - 1, 2, None, 1),
        (10 - A, 2, None, 8),
        (A * 2 + B, 2, 3, 7),
        (A * (2 + B), 2, 3, 10),
        (A // 60, -1, None, -1),
        (A % 60, -1, None, 59),
        (A == B, "x", "x", True),
        (A != "x", "x", None, False),
        (A < 3, 2, None, True),
        (A >= B, 2, 2, True),
        (A.is_null(), None, None, True),
        (A.is_null(), 0, None, False),
        *((expression, None, 1, None) for expression in (A + B, B - A, A == B, A != B, B < A, ~(A == B))),
    ],
)
def test_an_expression_computes_what_its_operators_say_and_none_of_none(expression, a, b, value):
    assert expression(Row(a=a, b=b)) == expression({"a": a, "b": b}) == value
    assert type(expression(Row(a=a, b=b))) is type(value)


KLEENE = {
    (True, True): (True, True),
    (True, False): (False, True),
    (True, None): (None, True),
    (False, False): (False, False),
    (False, None): (False, None),
    (None, None): (None, None),
}


@pytest.mark.parametrize("pair", KLEENE)
def test_connectives_know_three_truth_values(pair):
    for a, b in (pair, pair[::-1]):
        element = Row(a=a, b=b)
        assert ((A & B)(element), (A | B)(element)) == KLEENE[pair]
        assert (~(A & B))(element) == ((~A) | (~B))(element)


@pytest.mark.parametrize("misuse", [lambda: bool(A > 1), lambda: 1 < A < 2, lambda: A and B, lambda: not A])
def test_an_expression_is_neither_true_nor_false(misuse):
    with pytest.raises(TypeError, match="neither true nor false"):
        misuse()


def test_connectives_refuse_what_is_no_truth_value():
    with pytest.raises(TypeError, match="a is an int, and &"):
        (A & (B > 0))(Row(a=1, b=1))


def test_a_field_has_a_text_for_a_name():
    with pytest.raises(TypeError, match="a field has a name, not an int"):
        field(3)


def test_expressions_travel_and_say_what_they_are():
    expression = ~((A + 1 > B) & A.is_null())
    assert repr(expression) == "~(((a + 1) > b) & a.is_null())"
    assert repr(pickle.loads(pickle.dumps(expression))) == repr(expression)
    assert list(expression.fields()) == ["a", "b", "a"]
    assert beam.Filter(A > 1).label == "Filter(a > 1)"


def test_transforms_take_expressions_and_infer_types_of_them():
    scores = beam.Pipeline() | beam.Create([Score("red", 1)]).with_output_types(Score)
    doubled = scores | beam.Select(field("team"), double=field("points") * 2, many=field("points") > 10)
    wanted = [("team", str), ("double", int), ("many", bool)]
    assert doubled.element_type == row_type.RowTypeConstraint.from_fields(wanted)
    assert (scores | beam.Filter(field("points") > 0)).element_type == scores.element_type
    sums = scores | beam.GroupBy("team").aggregate_field("points", sum, "total").aggregate_field(
        "points", beam.combiners.MeanCombineFn(), "mean"
    ).aggregate_field(field("points") % 2, beam.combiners.CountCombineFn(), "count")
    wanted = [("team", str), ("total", int), ("mean", float), ("count", int)]
    assert sums.element_type == row_type.RowTypeConstraint.from_fields(wanted)


@pytest.mark.parametrize(
    "at",
    [3, 3.0, beam.utils.timestamp.Timestamp(3), datetime.datetime(1970, 1, 1, 0, 0, 3, tzinfo=datetime.UTC)],
)
def test_elements_get_the_time_that_is_in_them(at):
    stamp = beam.WithTimestamps("at")
    (step,) = [step for step in made_by(stamp) if step.label.endswith("Stamp")]
    (value,) = step.primitive.dofn.process({"at": at})
    assert value == TimestampedValue({"at": at}, 3)


@pytest.mark.parametrize("at", [1_767_225_600_000_000, -(10**13)])
def test_a_time_that_no_window_can_contain_is_refused(at):
    (step,) = [step for step in made_by(beam.WithTimestamps("at")) if step.label.endswith("Stamp")]
    with pytest.raises(ValueError, match="beyond the ends of time"):
        step.primitive.dofn.process({"at": at})


@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_a_comparison_with_none_that_no_element_fulfils_is_refused(compare):
    with pytest.raises(TypeError, match=r"a is compared with None.*\n  at test_.*\n  hint: write field"):
        compare(A, None)


def test_an_element_without_a_time_is_refused():
    (step,) = [step for step in made_by(beam.WithTimestamps(field("at"))) if step.label.endswith("Stamp")]
    with pytest.raises(ValueError, match="an element has no time"):
        step.primitive.dofn.process({"at": None})


def test_with_timestamps_wants_a_name_or_a_function():
    with pytest.raises(TypeError, match="name of a field or a function, not an int"):
        beam.WithTimestamps(3)


def test_rows_hold_the_bounds_of_their_windows():
    start = datetime.datetime(1970, 1, 1, 0, 1, tzinfo=datetime.UTC)
    make = RowInWindow((("n", A), ("start", beam.window_start()), ("is_late", beam.window_end() <= A)))
    window = beam.window.IntervalWindow(60, 120)
    at = start + datetime.timedelta(minutes=1)
    assert pickle.loads(pickle.dumps(make))({"a": at}, window) == Row(n=at, start=start, is_late=True)
    with pytest.raises(TypeError, match="a GlobalWindow has no"):
        make({"a": at}, beam.window.GlobalWindow())
    with pytest.raises(TypeError, match="in Select only"):
        beam.window_start()({"a": 1})


def made_by(transform):
    pipeline = beam.Pipeline()
    pipeline | beam.Create([{"at": 1}]) | transform
    return pipeline.to_graph().steps
