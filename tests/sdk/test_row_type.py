"""Row hints: from NamedTuples, dataclasses and fields; equality, consistency, checks and schemas."""

import dataclasses
import pickle
import typing

import pytest

from penstock.pvalue import Row
from penstock.typehints import schemas
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.schema_registry import SchemaTypeRegistry
from penstock.typehints.trivial_inference import instance_to_type
from penstock.typehints.typehints import (
    Any,
    CompositeTypeHintError,
    Dict,
    List,
    Optional,
    Union,
    check_constraint,
    is_consistent_with,
)


class Person(typing.NamedTuple):
    name: str
    age: int | None = None


@dataclasses.dataclass
class Team:
    lead: Person
    scores: list[int]


@dataclasses.dataclass(frozen=True)
class Node:
    value: int
    next: "Node | None"
    self: "Node"


def row(**fields):
    return RowTypeConstraint.from_fields(list(fields.items()))


def of(cls):
    return RowTypeConstraint.from_user_type(cls)


def test_rows_come_from_named_tuples_dataclasses_and_fields():
    assert of(Person).fields == (("name", str), ("age", Optional[int]))
    assert of(Team).fields == (("lead", of(Person)), ("scores", List[int]))
    assert of(Node).fields == (("value", int), ("next", Optional[Node]), ("self", Node))
    assert of(int) is None
    assert of(Person).user_type is Person
    assert str(row(x=int, y=list[str])) == "Row(x=<class 'int'>, y=List[<class 'str'>])"
    assert of(Team).get_type_for("scores") == List[int]
    assert of(Team).get_type_for("none") == Any


def test_the_fields_of_a_row_are_as_in_beam():
    beam = pytest.importorskip("apache_beam.typehints.row_type").RowTypeConstraint

    class Plain(typing.NamedTuple):
        name: str
        size: float

    for given in (of(Plain), row(a=int, b=bytes)):
        other = beam.from_user_type(Plain) if given.user_type is Plain else beam.from_fields(given.fields)
        assert [(name, given.get_type_for(name)) for name, _ in given.fields] == list(other._fields)
        assert given.get_type_for("none") == Any


def test_rows_are_values_and_survive_pickling():
    assert row(x=int) == row(x=int)
    assert hash(row(x=int)) == hash(row(x=int))
    assert row(x=int, y=str) != row(y=str, x=int)
    assert of(Person) != row(name=str, age=Optional[int])
    for hint in (row(x=int, y=row(z=str)), of(Team)):
        assert pickle.loads(pickle.dumps(hint)) == hint
    instance = row(x=int, y=str).user_type(1, "a")
    assert pickle.loads(pickle.dumps(instance)) == (1, "a")
    assert type(pickle.loads(pickle.dumps(instance))) is type(instance)


@pytest.mark.parametrize(
    ("sub", "base", "expected"),
    [
        (row(x=int), row(x=float), True),
        (row(x=Any), row(x=int), True),
        (row(x=int), row(x=str), False),
        (row(x=int), row(x=int, y=int), False),
        (row(x=int, y=int), row(y=int, x=int), False),
        (of(Person), Person, True),
        (Person, of(Person), True),
        (Person, row(name=str, age=Optional[int]), True),
        (row(name=str, age=Optional[int]), Person, False),
        (row(x=int), Row, True),
        (Row, row(x=int), True),
        (row(x=int), object, True),
        (of(Team), of(Person), False),
        (row(x=int), int, False),
        (row(x=int), Any, True),
    ],
)
def test_a_row_is_consistent_with_another_field_by_field(sub, base, expected):
    assert is_consistent_with(sub, base) is expected


def test_equal_fields_of_two_classes_do_not_make_one_an_instance_of_the_other():
    class Other(typing.NamedTuple):
        name: str
        age: int | None

    assert is_consistent_with(of(Person), Person)
    assert not is_consistent_with(of(Other), Person)


def test_the_fields_of_a_row_value_are_checked():
    check_constraint(row(x=int, y=Any), Row(x=1, y=None))
    check_constraint(of(Person), Person("a"))
    check_constraint(row(name=str, age=int), Person("a", 1))
    for value, reason in (
        (Row(x="secret"), "field 'x' is incorrect. .* type <class 'int'>, instead .* of type str"),
        (Row(y=1), "field 'x' is incorrect. There is none"),
        (("secret",), r"must be of type Row\(x=<class 'int'>\). Instead, an instance of 'tuple'"),
    ):
        with pytest.raises(CompositeTypeHintError, match=reason) as failure:
            check_constraint(row(x=int), value)
        assert "secret" not in str(failure.value)


def test_a_union_of_made_up_rows_is_one_row():
    assert Union[row(x=int, y=str), row(x=str, y=str)] == row(x=Union[int, str], y=str)
    assert Union[row(x=int), row(y=int)] != row(x=int)
    assert set(Union[Person, Team].union_types) == {Person, Team}
    assert instance_to_type([Row(x=1), Row(x="a")]) == List[row(x=Union[int, str])]


def test_schemas_tell_fields_and_make_classes():
    assert schemas.named_fields_from_element_type(Team) == [("lead", of(Person)), ("scores", List[int])]
    assert schemas.named_fields_from_schema(schemas.named_fields_to_schema({"x": dict[str, int]})) == [
        ("x", Dict[str, int])
    ]
    with pytest.raises(TypeError, match="Could not determine schema for type hint"):
        schemas.schema_from_element_type(int)
    with pytest.raises(TypeError, match="inconsistent names"):
        schemas.union_schema_type([row(x=int), row(y=int)])
    with pytest.raises(ValueError, match="'class' cannot name a field"):
        _ = row(**{"class": int}).user_type


def test_a_registered_class_is_found_by_the_name_of_its_schema():
    registry = SchemaTypeRegistry()

    class Registered(typing.NamedTuple):
        x: int

    schema = schemas.named_tuple_to_schema(Registered, registry)
    assert schemas.named_tuple_to_schema(Registered, registry).schema_id == schema.schema_id
    assert schemas.named_tuple_from_schema(schema, registry) is Registered
    assert registry.get_schema_by_id(schema.schema_id) == schema
    assert registry.get_registered_typings() == {schema.schema_id: Registered}


def test_a_row_tells_its_fields_as_a_named_tuple_does() -> None:
    assert Row(b=1, a="x")._fields == ("b", "a")
    assert Row()._fields == ()
    assert not hasattr(Row, "_fields")
