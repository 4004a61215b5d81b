"""Type hints: values, conversion of native hints, consistency, and checks of values, compared with Beam's."""

import collections
import collections.abc
import pickle
import re
import typing
from decimal import Decimal

import pytest

from penstock.typehints import decimal_of
from penstock.typehints import typehints as hints
from penstock.typehints.native_type_compatibility import convert_to_beam_type, convert_to_python_type
from penstock.typehints.typehints import (
    KV,
    Any,
    Collection,
    Dict,
    FrozenSet,
    Generator,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    TypeVariable,
    Union,
    WindowedValue,
    is_consistent_with,
)


class Parent:
    pass


class Child(Parent):
    pass


class Names(collections.abc.Iterable):
    def __iter__(self):
        return iter(("a",))


# Each is written so that it means the same in `hints` and in Beam's module of that name.
HINTS = """
int | bool | float | complex | str | object | Parent | Child | type(None) | Any | list | dict | tuple
set | Tuple[()] | Tuple[int] | Tuple[int, str] | Tuple[bool, Any] | Tuple[int, ...] | KV[int, str]
Tuple[Child, int] | List[int] | List[bool] | List[Any] | List[List[int]] | Set[int] | FrozenSet[int]
Dict[str, int] | Dict[str, bool] | Mapping[str, int] | Iterable[int] | Iterable[bool] | Iterable[Any]
Iterator[int] | Generator[int] | Collection[int] | Sequence[int] | Union[int, str]
Union[int, str, None] | Optional[int] | Union[()] | Union[int, Parent] | List[Union[int, str]]
WindowedValue[int] | Tuple[Union[int, str], ...] | TypeVariable('T') | typing.List[int] | list[int]
dict[str, int] | tuple[int, ...] | collections.abc.Iterable[int] | re.Pattern | re.Pattern[str]
re.Match[bytes] | typing.Union[int, str] | typing.Callable[..., int] | collections.abc.Set[int]
collections.OrderedDict[str, int] | collections.defaultdict | Names | Iterable[Union[int, str]]
Iterator[Any]
"""
VALUES = [1, True, 1.5, 1j, "a", b"a", None, (), (1,), (1, "a"), (1, 2, 3), [], [1], ["a"], [[1]], {1}, {"a"}]
VALUES += [frozenset({1}), {"a": 1}, {1: "a"}, collections.OrderedDict(a=1), Parent(), Child(), range(2)]


def expressions():
    return [text.strip() for line in HINTS.strip().splitlines() for text in line.split(" | ")]


def evaluated(text, module):
    names = {name: getattr(module, name) for name in dir(module)} | {"Parent": Parent, "Child": Child}
    return eval(text, names | {"Names": Names, "typing": typing, "collections": collections, "re": re})


def reason_to_differ(sub, base):
    """Why the answer to (sub, base) is not Beam's; None where it has to be."""
    if sub == "Names" or base == "Names":
        return "a class that is iterable yields Any here; Beam says that it is not iterable"
    if base.startswith(("Iterable", "collections.abc.Iterable")):
        if sub.startswith(("Iterator", "Generator")):
            return "an iterator is iterable (PEP 484)"
        if sub.startswith(("Dict", "dict", "collections.OrderedDict", "collections.defaultdict")):
            return "a dictionary iterates over its keys, as Beam says of Mapping but not of Dict"
    if base.startswith("Collection") and sub.startswith(
        ("Dict", "Mapping", "dict", "collections.OrderedDict")
    ):
        return "the keys decide; Beam accepts a mapping with any keys"
    if base.startswith("Collection") and sub.startswith("re."):
        return "Beam fails on native generics"
    if base.startswith(("Collection", "Sequence")) and sub in ("tuple", "Tuple[int, ...]", "tuple[int, ...]"):
        return "a tuple of any length is a sequence and so a collection"
    return None


def test_whether_one_hint_is_consistent_with_another_is_as_in_beam_except_for_listed_reasons():
    beam = pytest.importorskip("apache_beam.typehints.typehints")
    wrong, excused = [], set()
    for sub in expressions():
        for base in expressions():
            own = is_consistent_with(evaluated(sub, hints), evaluated(base, hints))
            try:
                theirs = beam.is_consistent_with(evaluated(sub, beam), evaluated(base, beam))
            except TypeError:
                theirs = None
            if own != theirs and reason_to_differ(sub, base) is None:
                wrong.append((sub, base, own, theirs))
            elif own != theirs:
                excused.add(reason_to_differ(sub, base))
    assert not wrong
    assert len(excused) == 6


def accepts(module, hint, value):
    try:
        module.check_constraint(hint, value)
    except TypeError:
        return False
    return True


def reason_to_check_otherwise(text, value):
    """Why the check of a value against a hint does not answer as Beam's; None where it has to."""
    if isinstance(value, (int, float)) and text in ("float", "complex"):
        return "an int may stand for a float (PEP 484), for values as for hints"
    if text == "Union[int, str, None]":
        return "None is the type of None here; in Beam's Union it accepts everything"
    if text.startswith(("Iterator", "Generator")):
        return "Beam checks what the iterator yields in place of the iterator"
    if "." in text or "[" not in text or text[0].islower():
        return "Beam does not check values against native hints" if not text[0].isupper() else None
    return None


def test_which_values_satisfy_a_hint_is_as_in_beam_except_for_listed_reasons():
    beam = pytest.importorskip("apache_beam.typehints.typehints")
    texts = [text for text in expressions() if not text.startswith(("re.", "typing.", "collections"))]
    wrong = []
    for text in texts:
        for value in VALUES:
            if reason_to_check_otherwise(text, value) is None:
                own = accepts(hints, evaluated(text, hints), value)
                if own != accepts(beam, evaluated(text, beam), value):
                    wrong.append((text, value, own))
    assert not wrong


@pytest.mark.parametrize("value", [1, True, 1.0])
def test_a_number_satisfies_the_hint_of_a_wider_number(value):
    assert hints.check_constraint(complex, value) is None
    assert hints.check_constraint(list[complex], [value]) is None


def test_a_check_of_an_iterator_does_not_use_up_its_elements():
    numbers = iter(["a"])
    hints.check_constraint(Iterator[int], numbers)
    hints.check_constraint(Iterable[int], numbers)
    assert list(numbers) == ["a"]
    with pytest.raises(
        hints.CompositeTypeHintError, match=r"type 'iterator'\. Instead, an instance of 'list'"
    ):
        hints.check_constraint(Iterator[int], [1])


def test_a_failed_check_says_where_it_failed_and_shows_no_value():
    with pytest.raises(hints.CompositeTypeHintError) as failure:
        hints.check_constraint(List[Tuple[str, int]], [("a", 1), ("secret", "b")])
    text = str(failure.value)
    assert text == (
        "List[Tuple[<class 'str'>, <class 'int'>]] hint type-constraint violated. The type of element #1 in the passed "
        "list is incorrect: Tuple[<class 'str'>, <class 'int'>] hint type-constraint violated. The type of element #1 "
        "in the passed tuple is incorrect. Expected an instance of type <class 'int'>, instead received an instance of "
        "type str.\n  hint: correct the value, or the type hint List[Tuple[<class 'str'>, <class 'int'>]]"
    )
    assert failure.value.args[0] == text.partition("\n")[0]
    with pytest.raises(
        hints.SimpleTypeHintError, match=r"an instance of type <class 'int'>, instead .* of type str"
    ):
        hints.check_constraint(int, "secret")


@pytest.mark.parametrize(
    ("hint", "value", "text"),
    [
        (Dict[str, int], ["secret"], "must be of type dict. One is of type list."),
        (Dict[str, int], {3: 1}, "key-type constraint violated. All keys .* Instead, one is of type int."),
        (
            Dict[str, List[int]],
            {"secret": 1},
            "value-type constraint violated.* Instead: List type-constraint violated.",
        ),
        (Tuple[int, int], (1,), "Expected a tuple of length 2, received a tuple of length 1."),
        (
            Union[int, str],
            b"secret",
            r"one of: \(\"<class 'int'>\", \"<class 'str'>\"\), received bytes instead.",
        ),
        (WindowedValue[int], "secret", "an instance of 'str' was received"),
    ],
)
def test_a_failed_check_says_what_is_wrong_in_the_words_of_beam(hint, value, text):
    with pytest.raises(hints.CompositeTypeHintError, match=text) as failure:
        hints.check_constraint(hint, value)
    assert "secret" not in str(failure.value)


@pytest.mark.parametrize("text", [text for text in expressions() if "Names" not in text])
def test_hints_are_values(text):
    one, other = evaluated(text, hints), evaluated(text, hints)
    assert one == other
    assert hash(one) == hash(other)
    assert one != Tuple[Parent, Parent, str]
    if not isinstance(one, typing.TypeVar) and "typing" not in text:
        assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (Tuple[str, int], "Tuple[<class 'str'>, <class 'int'>]"),
        (KV[str, List[int]], "Tuple[<class 'str'>, List[<class 'int'>]]"),
        (Tuple[Parent, ...], f"Tuple[{Parent}, ...]"),
        (Optional[Dict[str, Any]], "Union[<class 'NoneType'>, Dict[<class 'str'>, Any]]"),
        (WindowedValue[Set[int]], "WindowedValue[Set[<class 'int'>]]"),
        (Generator[int, None, None], "Iterator[<class 'int'>]"),
        (Union[str, Union[int, str]], "Union[<class 'int'>, <class 'str'>]"),
        (Union[int, Any], "Any"),
        (Union[int, int], "<class 'int'>"),
        (
            Union[Dict[str, int], Dict[int, str]],
            "Dict[Union[<class 'int'>, <class 'str'>], Union[<class 'int'>, <class 'str'>]]",
        ),
    ],
)
def test_hints_are_simplified_and_read_as_they_are_written(hint, text):
    assert str(hint) == text


@pytest.mark.parametrize(
    ("native", "hint"),
    [
        (int | None, Optional[int]),
        (list[int], List[int]),
        (dict[str, list[int]], Dict[str, List[int]]),
        (tuple[()], Tuple[()]),
        (tuple[int, ...], Tuple[int, ...]),
        (collections.abc.Iterable[str], Iterable[str]),
        (collections.abc.Generator[int, None, None], Iterator[int]),
        (collections.abc.Mapping[str, int], Mapping[str, int]),
        (collections.abc.Sequence[int], Sequence[int]),
        (collections.abc.Collection[int], Collection[int]),
        (frozenset[int], FrozenSet[int]),
        (collections.Counter[str], Dict[str, int]),
        (collections.Counter, Dict[TypeVariable("KT"), TypeVariable("VT")]),
        (typing.Annotated[list[int], "note"], List[int]),
        (typing.Annotated[Decimal, "price", decimal_of(10, 2)], decimal_of(10, 2)),
        (list[typing.Annotated[Decimal, decimal_of(4, 2)] | None], List[Optional[decimal_of(4, 2)]]),
        (typing.TypedDict("Record", {"x": int}), Dict[str, Any]),
        (typing.NewType("UserId", int), Any),
        (typing.Callable[[int], str], Any),
        (typing.Literal["a"], Any),
        ("int", Any),
        (Parent, Parent),
    ],
)
def test_native_hints_become_penstock_hints(native, hint):
    assert convert_to_beam_type(native) == hint


@pytest.mark.parametrize(
    "native",
    [
        int,
        list[int],
        dict[str, tuple[int, ...]],
        tuple[int, str],
        tuple[()],
        collections.abc.Iterable[set[int]],
        collections.abc.Mapping[str, frozenset[int]],
        typing.Union[int, None],
        typing.Any,
    ],
)
def test_a_native_hint_survives_the_way_there_and_back(native):
    assert convert_to_python_type(convert_to_beam_type(native)) == native


def test_a_type_variable_keeps_its_identity_on_the_way_there_and_back():
    variable = typing.TypeVar("variable")
    assert convert_to_beam_type(variable) is convert_to_beam_type(variable)
    assert convert_to_python_type(convert_to_beam_type(variable)) is variable


def test_any_stays_the_one_any_when_it_is_pickled():
    assert pickle.loads(pickle.dumps(List[Any])).inner_type is Any


def test_type_variables_are_matched_and_bound():
    key, value = TypeVariable("K"), TypeVariable("V")
    pattern = KV[key, Iterable[value]]
    bindings = hints.match_type_variables(pattern, KV[str, List[int]])
    assert bindings == {key: str, value: int}
    assert hints.bind_type_variables(List[pattern], bindings) == List[KV[str, Iterable[int]]]
    assert hints.bind_type_variables(Dict[key, key], {"*": int}) == Dict[int, int]
    assert hints.bind_type_variables(Union[key, None], {key: int}) == Optional[int]
    assert key != value
    assert TypeVariable("K", use_name_in_eq=False) == value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: List[5], "Parameter to List hint must be a non-sequence, a type, or a TypeConstraint"),
        (lambda: Union[int], "Cannot create Union without a sequence of types"),
        (lambda: Dict[int], "Dict type-hint must be"),
        (lambda: KV[int, int, int], "KV type-hint must be exactly 2"),
        (lambda: Tuple[int, str, ...], "Ellipsis can only be used"),
        (lambda: Optional[int, str], "only accepts a single type"),
        (lambda: Set[int, str], "Parameter to a Set hint"),
        (lambda: Tuple["int", 3], "All parameters to a Tuple hint"),
    ],
)
def test_a_hint_refuses_parameters_that_are_not_types(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize(
    ("hint", "element"),
    [
        (List[int], int),
        (Tuple[int, str], Union[int, str]),
        (Optional[Any], Any),
        (Union[List[int], Set[str]], Union[int, str]),
        (Generator[str], str),
        (collections.abc.Iterable[int], int),
        (Names, Any),
        (TypeVariable("T"), Any),
    ],
)
def test_the_elements_of_an_iterable_hint_are_known(hint, element):
    assert hints.get_yielded_type(hint) == element


@pytest.mark.parametrize("hint", [int, str, Dict[str, int], dict, Optional[List[int]], None])
def test_what_is_not_iterable_yields_nothing(hint):
    with pytest.raises(ValueError, match="is not iterable"):
        hints.get_yielded_type(hint)


def test_a_hint_is_coerced_to_a_pair_or_the_step_is_named():
    assert hints.coerce_to_kv_type(None) == KV[Any, Any]
    assert hints.coerce_to_kv_type(Union[KV[int, str], KV[str, str]]) == KV[Union[int, str], str]
    with pytest.raises(ValueError, match="Tuple input to 'Sum' must have two components"):
        hints.coerce_to_kv_type(Tuple[int, int, int], "Sum")
    with pytest.raises(
        ValueError, match=r"side-input of 'Sum' \(producer: 'Read'\) must be compatible with KV"
    ):
        hints.coerce_to_kv_type(int, "Sum", "Read")


def test_nullable_hints_are_taken_apart():
    assert hints.get_concrete_type_from_nullable(Optional[List[int]]) == List[int]
    assert not hints.is_nullable(Union[int, str, None])
    with pytest.raises(TypeError, match="not of nullable type"):
        hints.get_concrete_type_from_nullable(int)


def test_every_type_inside_a_hint_is_visited():
    seen = []
    hints.visit_inner_types(KV[str, List[Optional[int]]], lambda hint, into: into.append(hint), seen)
    assert {str, int, type(None), List[Optional[int]]} <= set(seen)


def test_any_is_equal_to_the_one_of_python() -> None:
    assert hints.Any == typing.Any
    assert len({hints.Any, typing.Any}) == 1
    assert hints.List[hints.Any] != typing.Any
    assert hints.TypeVariable("T") != typing.Any


def test_the_element_of_a_bare_iterator_has_the_name_that_it_has_in_python() -> None:
    assert hints.normalize(typing.Iterator) == hints.Iterator[hints.TypeVariable("T_co")]
