"""The changes of a table by key, as a task keeps them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.io.iceberg import WriteToIceberg
from penstock.relations.upserts import Upsert
from penstock_spark.sinks.table_changes import DELETED, LatestUpserts

NOON = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
ELSEWHERE = NOON.astimezone(datetime.timezone(datetime.timedelta(hours=2)))


def changes_of(kind: pa.DataType, upserts: list[Upsert]) -> list[dict[str, Any]]:
    sink = WriteToIceberg("lake.scores", key="key", value="points").sink
    changes = LatestUpserts(
        sink, pa.schema([("key", kind), ("points", pa.int64())]), "at step 'Write' (game.py:41)"
    )
    changes.add(upserts)
    return [row for batch in changes.batches() for row in batch.to_pylist()]


def test_a_task_keeps_the_last_change_of_each_key() -> None:
    upserts = [Upsert("a", 1), Upsert("b", 2), Upsert("a", 3), Upsert("b", None, True)]
    rows = [{"key": "a", "points": 3, DELETED: False}, {"key": "b", "points": None, DELETED: True}]
    assert changes_of(pa.string(), upserts) == rows
    assert changes_of(pa.string(), []) == []


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.decimal128(10, 2), Decimal("1.5"), Decimal("1.50")),
        (pa.timestamp("us", "UTC"), NOON, ELSEWHERE),
    ],
)
def test_keys_that_are_one_in_the_table_would_be_two_rows(kind: pa.DataType, one: Any, other: Any) -> None:
    assert len(changes_of(kind, [Upsert(one, 1), Upsert(one, 2)])) == 1
    for second in (Upsert(other, 2), Upsert(other, None, is_deleted=True)):
        with pytest.raises(
            ValueError, match=r"two keys that differ, .* are the same in the columns key"
        ) as caught:
            changes_of(kind, [Upsert(one, 1), second])
        assert "at step 'Write' (game.py:41)" in str(caught.value)
