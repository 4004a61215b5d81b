"""Checkpoints with rows that are stored by position, for a program that has the fields in another order."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import make_dataclass
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.coders import Coder, ListCoder, PickleCoder, RowCoder, VarIntCoder
from penstock.transforms.userstate import BagStateSpec, MapStateSpec, StateSpec
from penstock_spark.checkpoints.contract.compare import compare
from tests.runner.checkpoint_plans import Pipeline


class Node(NamedTuple):
    parent: Node | None


Kind = Callable[..., Any]


def named_tuple(*fields: str) -> Any:
    return NamedTuple("Visit", [(field, int) for field in fields])  # type: ignore[misc]


def record(*fields: str) -> Any:
    return make_dataclass("Visit", [(field, int) for field in fields])


def over(hint: Any, step: Any) -> Pipeline:
    def more(clicks: Any, sums: Any) -> None:
        typed = clicks | "Typed" >> beam.Map(lambda click: click).with_output_types(hint)
        _ = typed | "Own" >> step | "ShowOwn" >> beam.Map(print)

    return Pipeline(more=more)


def pairs(visit: Any) -> Any:
    return beam.typehints.Tuple[str, beam.typehints.Optional[visit]]


def by_visit(visit: Any) -> Any:
    return beam.typehints.Tuple[visit, int]


def stateful(spec: StateSpec) -> Any:
    class Keeping(beam.DoFn):
        CELL = spec

        def process(self, element: Any, cell: Any = beam.DoFn.StateParam(CELL)) -> Any:
            yield element

    return beam.ParDo(Keeping())


def refusals(old: Pipeline, new: Pipeline) -> list[str]:
    return compare(old.signature(), new.signature()).refusals


GROUP, COUNT, TOP = (
    beam.GroupByKey(),
    beam.combiners.Count.PerKey(),
    beam.combiners.Top.PerKey(3),
)


@pytest.mark.parametrize(
    ("hint", "step"), [(pairs, GROUP), (pairs, TOP), (by_visit, GROUP), (by_visit, COUNT)]
)
def test_fields_in_another_order_are_refused_where_rows_are_kept(hint: Any, step: Any) -> None:
    [refusal] = refusals(
        over(hint(named_tuple("user", "page")), step), over(hint(named_tuple("page", "user")), step)
    )
    assert re.fullmatch(
        rf"'Own.*' has stored values of {__name__}.Visit by the position of their fields: "
        r"keep the order of the fields, and add new ones at the end\n  - user, page\n  \+ page, user",
        refusal,
    )


@pytest.mark.parametrize("fields", [("user",), ("user", "page", "seconds"), ("user", "url")])
def test_fields_that_stay_where_they_are_are_no_reason(fields: tuple[str, ...]) -> None:
    assert not refusals(
        over(pairs(named_tuple("user", "page")), GROUP), over(pairs(named_tuple(*fields)), GROUP)
    )


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        (named_tuple, COUNT),
        (named_tuple, stateful(BagStateSpec("numbers", VarIntCoder()))),
        (record, GROUP),
    ],
)
def test_a_step_that_keeps_no_row_by_position_takes_any_order(kind: Kind, step: Any) -> None:
    assert not refusals(over(pairs(kind("user", "page")), step), over(pairs(kind("page", "user")), step))


@pytest.mark.parametrize(
    ("kind", "coders"),
    [
        (named_tuple, lambda visit: [PickleCoder()]),
        (named_tuple, lambda visit: [VarIntCoder(), ListCoder(PickleCoder())]),
        (named_tuple, lambda visit: [RowCoder(visit)]),
        (record, lambda visit: [RowCoder(visit)]),
        (record, lambda visit: [RowCoder(visit), VarIntCoder()]),
    ],
)
def test_a_cell_keeps_what_its_coders_write(kind: Kind, coders: Callable[[Any], list[Coder]]) -> None:
    def program(*fields: str) -> Pipeline:
        visit = kind(*fields)
        written = coders(visit)
        spec = BagStateSpec("cell", *written) if len(written) == 1 else MapStateSpec("cell", *written)
        return over(pairs(visit), stateful(spec))

    [refusal] = refusals(program("user", "page"), program("page", "user"))
    assert refusal.splitlines()[1:] == ["  - user, page", "  + page, user"]


def test_a_class_that_refers_to_itself_is_described() -> None:
    assert not refusals(over(pairs(Node), GROUP), over(pairs(Node), GROUP))


def test_a_checkpoint_from_before_orders_were_kept_fits() -> None:
    old, new = (over(pairs(named_tuple(*names)), GROUP) for names in (("user", "page"), ("page", "user")))
    signature = old.signature()
    for level in signature["levels"]:
        for grouping in level.values():
            del grouping["fields"]
    assert not compare(signature, new.signature()).refusals
