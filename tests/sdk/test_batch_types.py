"""Which batches a DoFn takes and gives, what is refused when it is applied, and the converters."""

from __future__ import annotations

import dataclasses
import datetime
import typing
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import penstock as beam
from penstock.functions.batches import batch_types_of
from penstock.typehints import KV, List, Optional, Tuple
from penstock.typehints.batch import (
    BATCH_CONVERTER_REGISTRY,
    BatchConverter,
    ListBatchConverter,
    N,
    NumpyArray,
)
from penstock.typehints.column_types import LOCAL_DATETIME
from penstock.utils.timestamp import Timestamp

INTS, FLOATS = List[int], List[float]


class OfElements(beam.DoFn):
    def process(self, element: int) -> Iterator[float]:
        yield element / 2


class OfBatches(beam.DoFn):
    def process_batch(self, batch: list[int]) -> Iterator[list[float]]:
        yield [element / 2 for element in batch]


class Unannotated(beam.DoFn):
    def process_batch(self, batch: list[int]):
        yield [element * 2 for element in batch]


class Overridden(beam.DoFn):
    def process_batch(self, batch):
        yield [element * 2 for element in batch]

    def get_input_batch_type(self, input_element_type: Any) -> Any:
        return list[input_element_type]

    def get_output_batch_type(self, input_element_type: Any) -> Any:
        return list[input_element_type]


class OfEither(OfElements, OfBatches):
    pass


class ElementToBatch(beam.DoFn):
    @beam.DoFn.yields_batches
    def process(self, element: int) -> Iterator[list[int]]:
        yield [element] * element

    def infer_output_type(self, input_type: Any) -> Any:
        return input_type


class BatchToElement(beam.DoFn):
    @beam.DoFn.yields_elements
    def process_batch(self, batch: list[int]) -> Iterator[tuple[int, int]]:
        yield sum(batch), len(batch)


@pytest.mark.parametrize(
    ("dofn", "takes", "gives"),
    [
        (OfElements(), None, None),
        (OfBatches(), INTS, FLOATS),
        (Unannotated(), INTS, INTS),
        (Overridden(), INTS, INTS),
        (OfEither(), INTS, FLOATS),
        (ElementToBatch(), None, INTS),
        (BatchToElement(), INTS, None),
        (beam.Map(lambda x: x * 2).dofn, None, None),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, beam.DoFn) else "",
)
def test_annotations_say_which_batches_a_dofn_takes_and_gives(
    dofn: beam.DoFn, takes: Any, gives: Any
) -> None:
    output = float if gives == FLOATS else int
    found = batch_types_of(dofn, int, output)
    given = (
        (found.takes and found.takes.batch_type, found.yields and found.yields.batch_type)
        if found
        else (None, None)
    )
    assert given == (takes, gives)


def applied(dofn: beam.DoFn, elements: Any = (1, 2)) -> beam.PCollection[Any]:
    return beam.Pipeline() | beam.Create(elements) | "Halve" >> beam.ParDo(dofn)


def test_the_output_s_type_is_that_of_elements() -> None:
    assert applied(ElementToBatch()).element_type is int
    assert applied(BatchToElement()).element_type == Tuple[int, int]
    assert applied(OfEither()).element_type is float
    declared = beam.Pipeline() | beam.Create([1]) | beam.ParDo(OfBatches()).with_output_types(float)
    assert declared.element_type is float


def no_annotation() -> beam.DoFn:
    class NoAnnotation(beam.DoFn):
        def process_batch(self, batch):
            yield batch

    return NoAnnotation()


def differing_batches() -> beam.DoFn:
    class DifferingBatches(OfBatches):
        @beam.DoFn.yields_batches
        def process(self, element: int) -> Iterator[list[int]]:
            yield [element]

    return DifferingBatches()


def differing_elements() -> beam.DoFn:
    class DifferingElements(OfElements):
        @beam.DoFn.yields_elements
        def process_batch(self, batch: list[int]) -> Iterator[int]:
            yield batch[0]

    return DifferingElements()


def returning() -> beam.DoFn:
    class Returning(beam.DoFn):
        def process_batch(self, batch: list[int]) -> list[int]:
            return batch

    return Returning()


def asking(param: Any) -> beam.DoFn:
    class Asking(beam.DoFn):
        def process_batch(self, batch: list[int], what: Any = param) -> Iterator[list[int]]:
            yield batch

    return Asking()


def with_an_argument_too_many() -> Any:
    return beam.ParDo(OfBatches(), 3)


@pytest.mark.parametrize(
    ("mistake", "kind", "text"),
    [
        (lambda: applied(no_annotation()), TypeError, r"NoAnnotation\.process_batch.*get_input_batch_type"),
        (lambda: applied(differing_batches()), TypeError, r"process: .*'int'>\], process_batch: .*'float'>\]"),
        (lambda: applied(differing_elements()), TypeError, r"Elements.*process: .*'float'>\], process_batch: It"),
        (lambda: applied(returning()), TypeError, r"Expected Iterator in its return type .*, not List"),
        (lambda: applied(OfBatches(), ["a"]), TypeError, r"input.*OfBatches.*element_type=<class 'str'>"),
        (lambda: applied(OfBatches()), TypeError, r"output.*OfBatches.*DoFn\.infer_output_type"),
        (lambda: applied(asking(beam.DoFn.KeyParam)), NotImplementedError, r"Asking.*KeyParam"),
        (lambda: applied(asking(beam.DoFn.ElementParam)), NotImplementedError, r"Asking.*ElementParam"),
        (lambda: applied(asking(beam.DoFn.WindowedValueParam)), ValueError, r"Asking.*WindowedValueParam"),
        (lambda: applied(asking(beam.DoFn.BundleFinalizerParam)), ValueError, r"Asking.*BundleFinalizerParam"),
        (with_an_argument_too_many, TypeError, r"OfBatches.process_batch is given 1 argument too many"),
        (
            lambda: beam.ParDo(BatchToElement()).with_exception_handling(),
            ValueError,
            r"fails by the batch.*define process too",
        ),
        (lambda: beam.ParDo(ElementToBatch()).with_exception_handling(), ValueError, r"fails by the batch"),
        (lambda: BatchConverter.register(name="list")(ListBatchConverter.from_typehints), AssertionError, "list"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_when_the_pipeline_is_built(mistake: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=f"(?s){text}") as raised:
        mistake()
    assert "hint: " in str(raised.value)


def test_exceptions_are_handled_by_the_element_where_there_is_process_too() -> None:
    pardo = beam.ParDo(OfEither()).with_exception_handling()
    good, _ = beam.Pipeline() | beam.Create([1]) | pardo
    assert good.element_type is float


class Point(NamedTuple):
    x: int
    name: typing.Optional[str]
    weights: list[float]
    at: Timestamp


@dataclasses.dataclass(frozen=True)
class Line:
    first: Point
    second: Point | None
    counts: dict[str, int]


POINTS = [Point(1, None, [0.5, 2.0], Timestamp(3)), Point(-2, "x", [], Timestamp.from_micros(-1))]
LINES = [Line(POINTS[0], POINTS[1], {"a": 1}), Line(POINTS[1], None, {})]
VECTORS = [np.array([1, 2, 3]), np.array([4, 5, 6])]

FITTING: list[tuple[Any, Any, list[Any]]] = [
    (int, list[int], [1, 2]),
    (Optional[int], list[Optional[int]], [1, None]),
    (KV[str, int], list[tuple[str, int]], [("a", 1)]),
    (int, np.ndarray, [1, -(2**63), 2**63 - 1]),
    (float, NumpyArray[np.float64], [1.5, float("inf"), -0.0]),
    (bool, np.ndarray, [True, False]),
    (str, np.ndarray, ["a", "", "longer"]),
    (np.uint8, np.ndarray, [0, 255]),
    (NumpyArray[int, (3,)], NumpyArray[int, (N, 3)], VECTORS),
    (NumpyArray[int, (3,)], NumpyArray[int, (3, N)], VECTORS),
    (object, np.ndarray, [[1], [2, 3], "a", None]),
    (int, pd.Series, [1, 2**62]),
    (Optional[int], pd.Series, [1, None, 2**62]),
    (str, pd.Series, ["a", ""]),
    (Optional[bool], pd.Series, [True, None]),
    (Point, pd.DataFrame, POINTS),
    (int, pa.Array, [1, 2**62]),
    (Optional[str], pa.Array, ["a", None]),
    (List[Optional[int]], pa.Array, [[1, None], []]),
    (Point, pa.Table, POINTS),
    (Line, pa.Table, LINES),
    (Line, pa.RecordBatch, LINES),
    (Line, pa.Array, LINES),
]


@pytest.mark.parametrize(("element_type", "batch_type", "elements"), FITTING, ids=lambda each: str(each)[:30])
def test_a_batch_gives_its_elements_back_as_they_were(
    element_type: Any, batch_type: Any, elements: list[Any]
) -> None:
    converter = BatchConverter.from_typehints(element_type=element_type, batch_type=batch_type)
    whole = converter.produce_batch(elements)
    twice = converter.combine_batches([whole, whole])
    assert (converter.get_length(whole), converter.get_length(twice)) == (len(elements), 2 * len(elements))
    assert converter.estimate_byte_size(whole) > 0
    one = converter.produce_batch(elements[:1])
    for batch, expected in ((whole, elements), (twice, 2 * elements), (one, elements[:1])):
        found = list(converter.explode_batch(batch))
        assert list(map(repr, found)) == list(map(repr, expected)) or found == expected
        assert element_type is np.uint8 or list(map(type, found)) == list(map(type, expected))
    again = cloudpickle.loads(cloudpickle.dumps(converter))
    assert (again, hash(again)) == (converter, hash(converter))


@pytest.mark.parametrize(
    ("element_type", "batch_type", "elements"),
    [
        (int, np.ndarray, [1, 2**63]),
        (int, np.ndarray, [1, 0.5]),
        (int, np.ndarray, [1, None]),
        (int, np.ndarray, [[1], [2]]),
        (int, np.ndarray, [1, "2"]),
        (np.uint8, np.ndarray, [1, 256]),
        (np.uint8, np.ndarray, [1, -1]),
        (float, np.ndarray, [1.0, "2"]),
        (bool, np.ndarray, [True, 2]),
        (str, np.ndarray, ["a", 1]),
        (str, np.ndarray, ["a\0"]),
        (NumpyArray[int, (3,)], NumpyArray[int, (N, 3)], [np.array([1, 2])]),
        (int, pd.Series, [1, "2"]),
        (int, pd.Series, [1, 2**64]),
        (int, pd.Series, [1, True]),
        (float, pd.Series, [1.0, 2**53 + 1]),
        (float, pd.Series, [1.0, Decimal("0.1")]),
        (np.float32, pd.Series, [1.0, 1e300]),
        (np.float32, np.ndarray, [1.0, 1e300]),
        (float, np.ndarray, [0.5, 2**53 + 1]),
        (float, np.ndarray, [1.0, True]),
        (float, pd.Series, [1.0, None]),
        (str, pd.Series, ["a", 1]),
        (Point, pd.DataFrame, [3]),
        (int, pa.Array, [1, 0.5]),
        (int, pa.Array, [1, None]),
        (str, pa.Array, [b"a"]),
        (Point, pa.Table, [3]),
        (Point, pa.Table, [POINTS[0]._replace(name=3)]),
    ],
    ids=lambda each: str(each)[:30],
)
def test_elements_that_would_not_come_back_are_refused(
    element_type: Any, batch_type: Any, elements: list[Any]
) -> None:
    converter = BatchConverter.from_typehints(element_type=element_type, batch_type=batch_type)
    with pytest.raises(TypeError, match="an element of a batch does not match its type hint") as raised:
        converter.produce_batch(elements)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize(
    ("element_type", "batch_type"),
    [
        (int, list[float]),
        (beam.typehints.Any, list[int]),
        (int, list),
        (int, dict[str, int]),
        (beam.typehints.Any, np.ndarray),
        (Tuple[int, int], np.ndarray),
        (int, NumpyArray[float]),
        (int, NumpyArray[int, (N, 3)]),
        (NumpyArray[int, (3,)], NumpyArray[int, (3,)]),
        (int, np.int64),
        (int, pd.DataFrame),
        (int, pd.Index),
        (int, pa.Table),
        (set[int], pa.Array),
        (int, pa.ChunkedArray),
    ],
    ids=lambda each: str(each)[:30],
)
def test_there_is_no_converter_for_what_does_not_go_together(element_type: Any, batch_type: Any) -> None:
    with pytest.raises(TypeError, match="Unable to find BatchConverter"):
        BatchConverter.from_typehints(element_type=element_type, batch_type=batch_type)


def test_converters_are_equal_where_batches_can_be_handed_on() -> None:
    def converter(element_type: Any, batch_type: Any) -> Any:
        return BatchConverter.from_typehints(element_type=element_type, batch_type=batch_type)

    assert converter(int, np.ndarray) == converter(np.int64, NumpyArray[np.int64])
    assert converter(int, np.ndarray) != converter(float, np.ndarray)
    assert converter(int, list[int]) != converter(int, np.ndarray)
    assert converter(int, pd.Series) != converter(float, pd.Series)


@pytest.mark.parametrize(
    ("element_type", "batch_type"),
    [
        (int, list[int]),
        (int, np.ndarray),
        (int, pd.Series),
        (Point, pd.DataFrame),
        (int, pa.Array),
        (Point, pa.Table),
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_text_is_no_batch_although_it_has_a_length(element_type: Any, batch_type: Any) -> None:
    converter = BatchConverter.from_typehints(element_type=element_type, batch_type=batch_type)
    with pytest.raises(TypeError, match="str is not"):
        converter.get_length("ab")


def test_a_hint_for_arrays_checks_them() -> None:
    hint = NumpyArray[np.int64, (N, 3)]
    hint.type_check(np.zeros((5, 3), np.int64))
    for wrong in ([1], np.zeros((5, 3)), np.zeros((5, 2), np.int64), np.zeros(3, np.int64)):
        with pytest.raises(TypeError):
            hint.type_check(wrong)


class Letters(BatchConverter[str, str]):
    """Batches that are texts."""

    def produce_batch(self, elements: Any) -> str:
        return "".join(elements)

    def explode_batch(self, batch: str) -> Iterator[str]:
        return iter(batch)

    def get_length(self, batch: str) -> int:
        return len(batch)


def test_a_converter_of_one_s_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.typehints.batch.BATCH_CONVERTER_REGISTRY", dict(BATCH_CONVERTER_REGISTRY))

    @BatchConverter.register(name="letters")
    def letters(element_type: Any, batch_type: Any) -> Letters:
        if (element_type, batch_type) != (str, str):
            raise TypeError("batch type must be str")
        return Letters(batch_type, element_type)

    found = BatchConverter.from_typehints(element_type=str, batch_type=str)
    assert list(found.explode_batch(found.produce_batch(["a", "b"]))) == ["a", "b"]


@pytest.mark.parametrize(
    ("element_type", "kind", "number", "value"),
    [
        (Timestamp, pa.timestamp("s", "UTC"), 7, Timestamp(7)),
        (Timestamp, pa.timestamp("ns", "Europe/Berlin"), 7_000_000_000, Timestamp(7)),
        (LOCAL_DATETIME, pa.timestamp("ns"), 7_000_001_000, datetime.datetime(1970, 1, 1, 0, 0, 7, 1)),
        (datetime.timedelta, pa.duration("ms"), 7, datetime.timedelta(milliseconds=7)),
        (datetime.time, pa.time32("s"), 7, datetime.time(0, 0, 7)),
    ],
    ids=str,
)
def test_an_array_that_a_dofn_returns_may_have_times_of_any_unit(
    element_type: Any, kind: pa.DataType, number: int, value: Any
) -> None:
    converter = BatchConverter.from_typehints(element_type=element_type, batch_type=pa.Array)
    assert converter.explode_batch(pa.array([number], kind)) == [value]
