"""Generators give in Spark, which gets the user's own text, what the transforms make of the same rows."""

from __future__ import annotations

import re
from typing import Any

from tests.sql.query_cases import CASES, shown

_NOT_IN_SPARK = re.compile(r"(, | JOIN )UNNEST\(")
"""In Spark, what reads tables before it needs the word LATERAL."""


def test_spark_gives_the_rows_of_the_cases(spark: Any) -> None:
    own = [
        case for case in CASES if case.name.startswith("generators: ") and "as Spark cannot" not in case.name
    ]
    for case in own:
        for name, table in case.read.items():
            spark.createDataFrame(table.rows, table.spark_schema).createOrReplaceTempView(name)
        query = _NOT_IN_SPARK.sub(r"\1LATERAL UNNEST(", case.query)
        assert shown(map(tuple, spark.sql(query).collect())) == case.rows, case.name
