"""Arguments of Beam's that a transform does not have are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.transforms.sql import SqlTransform

CALLS = [
    (lambda **more: beam.Read("kafka", **more), "Read", {"config": {"topic": "clicks"}}, "ReadFromKafka"),
    (lambda **more: beam.Write("iceberg", **more), "Write", {"config_url": "x.yaml"}, "WriteToDatabase"),
    (lambda **more: SqlTransform("SELECT 1", **more), "SqlTransform", {"dialect": "zetasql"}, "Spark's SQL"),
    (lambda **more: SqlTransform("SELECT 1", **more), "SqlTransform", {"ddl": "CREATE"}, "a Catalog"),
]


@pytest.mark.parametrize(("call", "name", "arguments", "hint"), CALLS)
def test_an_argument_of_beams_is_refused_with_a_hint(
    call: Any, name: str, arguments: dict[str, Any], hint: str
) -> None:
    argument = next(iter(arguments))
    with pytest.raises(UnsupportedByRunner) as caught:
        call(**arguments)
    what, where, advice = str(caught.value).splitlines()
    assert what == f"{name} does not have Beam's {argument}"
    assert where.startswith("  at test_unsupported_arguments.py:")
    assert advice.startswith("  hint: ")
    assert hint in advice
    call(**dict.fromkeys(arguments))
    with pytest.raises(TypeError, match=f"^{name} has no argument 'confg'\n  at test_unsupported"):
        call(confg=None)


def test_a_query_takes_no_dialect_for_its_catalog_and_needs_no_service() -> None:
    with pytest.raises(TypeError, match="the catalog must be a Catalog, but is a str"):
        SqlTransform("SELECT 1", "zetasql")  # type: ignore[arg-type]
    SqlTransform("SELECT 1", expansion_service="localhost:8097")
