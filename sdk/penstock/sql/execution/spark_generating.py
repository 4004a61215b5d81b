"""Generators in Spark's SQL."""

from __future__ import annotations

from collections.abc import Callable

from penstock.scalars.spark_forms import NotForSpark
from penstock.scalars.tree import Scalar
from penstock.sql.generators.functions import RECORDS
from penstock.sql.plan.relations import Generate


def write_generated(relation: Generate, rows: str, write: Callable[[Scalar], str]) -> str:
    """Returns the query that adds generated rows to rows.

    Args:
        relation: The generator.
        rows: The query of the rows, whose columns are ``c0``, ``c1`` and up.
        write: Writes a value of a row.

    Raises:
        NotForSpark: Spark would not give exactly the same.
    """
    record = RECORDS[relation.name]
    if relation.condition is not None:
        raise NotForSpark("Spark's generators take no condition")
    width, count = len(relation.input.columns), len(relation.generated)
    arguments = [write(each) for each in relation.arguments]
    call = record.spark.format(all=", ".join(arguments), rows=len(arguments) // count)
    names = ", ".join(f"g{at}" for at in range(count))
    if not record.in_from_only:
        generated = f"LATERAL VIEW {'OUTER ' if relation.outer else ''}{call} g AS {names}"
    elif relation.outer:
        generated = f"LEFT JOIN LATERAL {call} AS g({names}) ON TRUE"
    else:
        generated = f"CROSS JOIN LATERAL {call} AS g({names})"
    shown = [f"c{at}" for at in range(width)]
    for at, each in enumerate(relation.generated):
        # A position has 32 bits in Spark.
        value = f"CAST(g{at} AS BIGINT)" if each.type.name == "BIGINT" else f"g{at}"
        shown.append(f"{value} AS c{width + at}")
    return f"SELECT {', '.join(shown)} FROM ({rows}) {generated}"
