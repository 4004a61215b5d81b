"""Type hints on callables: decorators, annotations, and how they become hints of elements."""

import collections.abc
import dataclasses
import functools
import pickle
import sys
import typing

import pytest

import penstock as beam
from penstock.pvalue import PBegin, PCollection, PDone, TaggedOutput
from penstock.sql.catalog import Catalog
from penstock.typehints import decorators
from penstock.typehints.decorators import (
    IOTypeHints,
    TypeCheckError,
    WithTypeHints,
    get_signature,
    get_type_hints,
    getcallargs_forhints,
    no_annotations,
    with_input_types,
    with_output_types,
)
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.typehints import Any, Dict, Iterable, List, Optional, Tuple, Union

if typing.TYPE_CHECKING:
    from nowhere import Unknown


def outputs(hint, **tagged):
    return IOTypeHints.empty().with_output_types(hint, **tagged)


def main_type(hints):
    return hints.simple_output_type("the test")


def test_decorators_set_hints_on_functions_and_classes():
    @with_input_types(str, count=int)
    @with_output_types(list[str], bad=int)
    def repeat(text, count):
        return [text] * count

    @with_output_types(int)
    class Transform(WithTypeHints):
        pass

    hints = get_type_hints(repeat)
    assert hints.input_types == ((str,), {"count": int})
    assert main_type(hints) == List[str]
    assert hints.tagged_output_types() == {"bad": int}
    assert main_type(Transform().get_type_hints()) is int
    assert main_type(Transform().with_output_types(str).get_type_hints()) is str
    assert main_type(Transform().get_type_hints()) is int
    assert not get_type_hints(len)


def test_hints_set_on_an_object_come_before_its_defaults():
    class Transform(WithTypeHints):
        def default_type_hints(self):
            return IOTypeHints.empty().with_input_types(str).with_output_types(int)

    hints = Transform().with_output_types(float).get_type_hints()
    assert hints.input_types == ((str,), {})
    assert main_type(hints) is float


@pytest.mark.parametrize(
    ("decorate", "error", "message"),
    [
        (lambda: with_output_types(int, str), ValueError, "accepts only a single positional argument"),
        (lambda: with_output_types(5), TypeError, "All type hint arguments"),
        (lambda: with_output_types(int, bad=5), TypeError, "Tagged output type hint for 'bad'"),
        (lambda: with_input_types(5)(lambda x: x), TypeError, "All type hint arguments"),
    ],
)
def test_decorators_refuse_what_is_no_hint(decorate, error, message):
    with pytest.raises(error, match=message):
        decorate()


def annotated(a: int, b, *rest: str, c: "list[int]", d=5, **others) -> dict[str, int]: ...


def written_later(a: "Unknown", b: int) -> "Unknown": ...


def test_annotations_are_hints_and_the_rest_is_any():
    hints = IOTypeHints.from_callable(annotated)
    assert hints.input_types == ((int, Any, str), {"c": List[int], "d": Any, "others": Dict[Any, Any]})
    assert main_type(hints) == Dict[str, int]
    assert IOTypeHints.from_callable(lambda x: x) is None
    assert main_type(IOTypeHints.from_callable(written_later)) == Any
    catalog = Catalog()
    catalog.create_function("later", written_later)
    assert str(catalog.functions["LATER"].type) == "ANY"


UNRESOLVED = """
class Doubles(DoFn):
    def process(self, element: Unknown, factor: int = 2) -> Iterable[Unknown]:
        yield factor * element

class Passes(PTransform):
    def expand(self, pcoll: PCollection[Unknown]) -> PCollection[int]:
        return pcoll

class Sale(NamedTuple):
    price: Unknown
    pieces: int

@dataclass
class Purchase:
    price: Unknown
    pieces: int

def read(text: str) -> Unknown:
    return int(text)
"""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated at once before Python 3.14")
def test_an_annotation_that_names_what_does_not_exist_counts_as_any():
    names = {"__name__": "program", **vars(typing), "dataclass": dataclasses.dataclass}
    names.update(DoFn=beam.DoFn, PTransform=beam.PTransform, PCollection=beam.pvalue.PCollection)
    # Without what a module imports from __future__: it would make texts of annotations.
    exec(compile(UNRESOLVED, "program.py", "exec", dont_inherit=True), names)
    doubles = beam.ParDo(names["Doubles"](), 3).get_type_hints()
    assert (doubles.input_types, main_type(doubles)) == (((Any, int), {}), Any)
    assert main_type(names["Passes"]().get_type_hints()) is int
    for row in ("Sale", "Purchase"):
        assert RowTypeConstraint.from_user_type(names[row]).fields == (("price", Any), ("pieces", int))
    assert main_type(beam.Map(names["read"]).get_type_hints()) == Any
    assert getcallargs_forhints(names["read"], str) == {"text": str}
    catalog = Catalog()
    catalog.create_function("read", names["read"])
    assert str(catalog.functions["READ"].type) == "ANY"


def readable(beam_hints):
    """Beam's hints written as penstock's are."""
    found = "Union[<class 'NoneType'>, <class 'int'>]"
    return str(beam_hints).replace("Union[<class 'int'>, <class 'NoneType'>]", found)


def test_annotations_agree_with_beam():
    beam = pytest.importorskip("apache_beam.typehints.decorators")

    def method(x: typing.Optional[int], *rest, key: str = "a", **more: float) -> typing.Iterator[int]: ...

    for function in (method, str.upper, int, functools.partial(method, key="b")):
        own, theirs = IOTypeHints.from_callable(function), beam.IOTypeHints.from_callable(function)
        for mine, other in zip(own.input_types, theirs.input_types, strict=True):
            assert str(mine) == readable(other)


def test_annotations_can_be_switched_off_for_a_callable_or_for_all(monkeypatch):
    @no_annotations
    def double(x: int) -> int:
        return 2 * x

    assert IOTypeHints.from_callable(double) is None
    monkeypatch.setitem(decorators.IOTypeHints.from_callable.__globals__["_settings"], "annotations", True)
    decorators.disable_type_annotations()
    assert IOTypeHints.from_callable(annotated) is None


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


def test_a_class_returns_its_instances_and_a_builtin_method_takes_its_receiver():
    assert get_signature(Point).return_annotation is Point
    assert main_type(IOTypeHints.from_callable(Point)) is Point
    assert main_type(IOTypeHints.from_callable(list)) == List[Any]
    assert next(iter(get_signature(str.strip).parameters.values())).annotation is str
    assert list(get_signature(dict.fromkeys).parameters) == ["iterable", "value"]


@pytest.mark.parametrize(
    ("hint", "element"),
    [
        (List[int], int),
        (Optional[List[int]], int),
        (Tuple[int, str], Union[int, str]),
        (collections.abc.Generator[str, None, None], str),
        (Any, Any),
        (typing.TypeVar("T"), Any),
        (type(None), Any),
    ],
)
def test_the_iterable_is_taken_off_the_output(hint, element):
    stripped = IOTypeHints.empty().with_output_types(decorators.convert_to_beam_type(hint)).strip_iterable()
    assert main_type(stripped) == element


def test_an_output_that_is_not_iterable_cannot_be_stripped():
    with pytest.raises(ValueError, match="is not iterable"):
        outputs(int).strip_iterable()
    assert outputs(List[int], bad=List[str]).strip_iterable().tagged_output_types() == {"bad": str}


@pytest.mark.parametrize(
    ("hint", "main", "tagged"),
    [
        (int, int, {}),
        (TaggedOutput[typing.Literal["bad"], str], Any, {"bad": str}),
        (int | TaggedOutput[typing.Literal["bad"], list[str]], int, {"bad": List[str]}),
        (int | str | TaggedOutput[typing.Literal["a"], int], Union[int, str], {"a": int}),
        (int | TaggedOutput, int, {}),
    ],
)
def test_tagged_outputs_are_taken_out_of_the_main_output(hint, main, tagged):
    def process(x) -> collections.abc.Iterable[hint]: ...

    hints = IOTypeHints.from_callable(process).strip_iterable().extract_tagged_outputs()
    assert (main_type(hints), hints.tagged_output_types()) == (main, tagged)


def test_a_tagged_output_without_a_literal_tag_is_refused():
    with pytest.raises(TypeError, match=r"write TaggedOutput\[Literal"):
        outputs(TaggedOutput[str, int]).extract_tagged_outputs()


@pytest.mark.parametrize(
    ("given", "produced", "inputs", "output"),
    [
        (PCollection[int], PCollection[list[str]], ((int,), {}), ((List[str],), {})),
        (PBegin, PDone, ((Any,), {}), ((Any,), {})),
        (PCollection, None, ((Any,), {}), ((Any,), {})),
        (int, str, None, None),
    ],
)
def test_pcollections_are_taken_off_the_hints_of_a_transform(given, produced, inputs, output):
    stripped = IOTypeHints.empty().with_input_types(given).with_output_types(produced).strip_pcoll()
    assert (stripped.input_types, stripped.output_types) == (inputs, output)


def test_hints_are_bound_to_parameters_by_position_and_by_name():
    def function(a, b: float = 1.0, *rest, key=None, **more): ...

    bound = getcallargs_forhints(function, int, str, bytes, str, key=bool, other=int)
    assert bound == {
        "a": int,
        "b": str,
        "rest": Tuple[Union[bytes, str], ...],
        "key": bool,
        "more": Dict[str, int],
    }
    assert getcallargs_forhints(function, int) == {
        "a": int,
        "b": float,
        "rest": Tuple[Any, ...],
        "key": Any,
        "more": Dict[Any, Any],
    }
    assert getcallargs_forhints(function, int, str, Tuple[int, ...])["rest"] == Tuple[int, ...]
    with pytest.raises(TypeCheckError, match="missing a required argument"):
        getcallargs_forhints(function)


def test_io_type_hints_are_values_that_know_where_they_were_written():
    hints = outputs(Iterable[int])
    assert hints == outputs(Iterable[int])
    assert hash(hints) == hash(outputs(Iterable[int]))
    assert hints != outputs(Iterable[str])
    assert "test_typehint_decorators.py:" in hints.debug_str()
    assert pickle.loads(pickle.dumps(hints)) == hints
    assert not IOTypeHints.empty()
    with pytest.raises(TypeError, match="Expected single output type hint for A but got"):
        outputs(int).with_output_types(int, str).simple_output_type("A")


class Bare(beam.PTransform):
    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        return pcoll


class FromBegin(beam.PTransform):
    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.pvalue.PDone:
        return beam.pvalue.PDone(pbegin.pipeline)


class HalfTyped(beam.PTransform):
    def expand(self, pcoll) -> beam.PCollection[str]:
        return pcoll


class Arbitrary(beam.PTransform):
    def expand(self, pcoll: int) -> str:
        return str(pcoll)


@pytest.mark.parametrize(
    ("transform", "inputs", "outputs"),
    [(Bare(), Any, Any), (FromBegin(), Any, Any), (HalfTyped(), Any, str), (Arbitrary(), None, None)],
)
def test_what_expand_takes_and_gives_without_naming_a_type_is_any(transform, inputs, outputs) -> None:
    hints = transform.get_type_hints()
    assert hints.input_types == (None if inputs is None else ((inputs,), {}))
    assert hints.output_types == (None if outputs is None else ((outputs,), {}))


def test_what_is_no_type_is_shown_where_a_hint_is_asked_for() -> None:
    for give in (with_input_types([1, 2]), with_input_types(x=[1, 2])):
        with pytest.raises(TypeError, match=r"\[1, 2\] is an instance of list"):
            give(lambda x: x)
    with pytest.raises(TypeError, match=r"\[1, 2\] is an instance of list"):
        beam.Map(str).with_input_types([1, 2])


def test_hints_know_by_which_call_they_were_given_and_show_no_arguments_of_a_partial_function() -> None:
    lines = IOTypeHints.empty().with_input_types(int).with_output_types(str).debug_str().splitlines()
    assert [line.partition(" at ")[0] for line in lines[1:]] == ["with_output_types", "with_input_types"]

    def fn(a: int, b: int) -> int: ...

    text = IOTypeHints.from_callable(functools.partial(fn, 717171)).debug_str()
    assert "an unknown callable" in text
    assert "717171" not in text
