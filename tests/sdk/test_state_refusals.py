"""What is refused of DoFns with state or timers while the pipeline is written."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.coders import FastPrimitivesCoder, VarIntCoder
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.userstate import BagStateSpec, ReadModifyWriteStateSpec, TimerSpec, on_timer


class Counts(beam.DoFn):
    COUNT = ReadModifyWriteStateSpec("count", VarIntCoder())

    def process(self, element: Any, count: Any = beam.DoFn.StateParam(COUNT)) -> Any:
        yield element


class Rings(beam.DoFn):
    END = TimerSpec("end", TimeDomain.WATERMARK)

    def process(self, element: Any, end: Any = beam.DoFn.TimerParam(END)) -> Any:
        yield element

    @on_timer(END)
    def ring(self) -> Any:
        yield "over"


class OneNameTwice(beam.DoFn):
    COUNT = ReadModifyWriteStateSpec("count", VarIntCoder())
    BAG = BagStateSpec("count", FastPrimitivesCoder())

    def process(
        self, element: Any, count: Any = beam.DoFn.StateParam(COUNT), bag: Any = beam.DoFn.StateParam(BAG)
    ) -> Any:
        yield element


@pytest.mark.parametrize("dofn", [Counts(), Rings()], ids=["state", "a timer"])
def test_elements_without_keys(dofn):
    numbers = beam.Pipeline() | beam.Create([1])
    with pytest.raises(
        ValueError, match=r"(?s)'Count' .* must be key-value pairs, not <class 'int'>.*hint: make pairs"
    ):
        _ = numbers | "Count" >> beam.ParDo(dofn)


def test_two_cells_of_one_name():
    pairs = beam.Pipeline() | beam.Create([("a", 1)])
    with pytest.raises(ValueError, match=r"(?s)OneNameTwice.*count.*test_state_refusals\.py.*hint"):
        _ = pairs | beam.ParDo(OneNameTwice())
