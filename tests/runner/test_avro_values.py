"""Values that fastavro would silently change or leave out are refused, in every place of a schema."""

from __future__ import annotations

import contextlib
import datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.io.avroio import AvroSink
from penstock.io.files.shards import Shards
from penstock.utils.timestamp import MAX_TIMESTAMP, Timestamp
from penstock_connectors.avro.writer import avro_files
from penstock_spark.reports.failure import StepFailure, find_failure, to_exception

pytest.importorskip("fastavro", reason="needs the package fastavro")


def logical(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "logicalType": name}


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": each, "type": fields[each]} for each in fields],
    }


INSTANT, LOCAL = logical("long", "timestamp-micros"), logical("long", "local-timestamp-micros")
NOON = datetime.datetime(2026, 7, 1, 12, 0, 0, 123456)
NOON_UTC = NOON.replace(tzinfo=datetime.UTC)
CITY = record("City", name="string")
TREE = record("Tree", name="string", left=["null", "Tree"])
LACKS, NO_ZONE, ZONE, MISFIT = (
    "which the schema lacks",
    "has no zone",
    "has a zone",
    "a value of the field x does not fit the type",
)


@pytest.mark.parametrize(
    ("schema", "kept", "lost", "words"),
    [
        (CITY, {"name": "Rome"}, {"name": "Rome", "code": 1}, LACKS),
        (["null", CITY], None, {"name": "Rome", "code": 1}, LACKS),
        (["null", CITY], {"-type": "City", "name": "Rome"}, ("City", {"name": "Rome", "code": 1}), LACKS),
        ([CITY, record("Code", code="int")], {"code": 1}, {"name": "Rome", "code": 1}, LACKS),
        ({"type": "array", "items": CITY}, [{"name": "Rome"}], [{"name": "Rome", "code": 1}], LACKS),
        ({"type": "map", "values": CITY}, {"a": {"name": "Rome"}}, {"a": {"name": "Rome", "code": 1}}, LACKS),
        (TREE, {"name": "a", "left": {"name": "b"}}, {"name": "a", "left": {"name": "b", "right": 1}}, LACKS),
        (INSTANT, NOON_UTC, NOON, NO_ZONE),
        (["null", INSTANT], None, NOON, NO_ZONE),
        (INSTANT, Timestamp(7), MAX_TIMESTAMP, "a time of the field x is outside of the years 1 to 9999"),
        (LOCAL, NOON, NOON_UTC, ZONE),
        (["null", "string", LOCAL], "noon", NOON_UTC, ZONE),
        (logical("long", "time-micros"), NOON.time(), NOON_UTC.timetz(), ZONE),
        (logical("long", "timestamp-millis"), NOON_UTC.replace(microsecond=123000), NOON_UTC, MISFIT),
        (logical("int", "time-millis"), NOON.time().replace(microsecond=0), NOON.time(), MISFIT),
        (logical("int", "date"), NOON.date(), NOON, MISFIT),
        (INSTANT, NOON_UTC, 1, MISFIT),
        (INSTANT, NOON_UTC, 1.5, MISFIT),
        (logical("int", "date"), NOON.date(), 1, MISFIT),
        (logical("int", "date"), NOON.date(), "2026-07-01", MISFIT),
        (logical("long", "time-micros"), NOON.time(), 1, MISFIT),
        ("float", 1e30, 1e300, MISFIT),
        ("double", 1 << 60, (1 << 53) + 1, MISFIT),
        (logical("string", "uuid"), "7a2cd4f3-6e25-4f09-a4e3-6eb0a5c25ad5", "x", MISFIT),
        ("null", None, 5, MISFIT),
        ("long", 1, True, MISFIT),
        ({"type": "array", "items": "string"}, ["a"], "ab", MISFIT),
        ({"type": "array", "items": "string"}, ("a",), {"a": 1}, MISFIT),
        ({"type": "array", "items": "long"}, [97], b"ab", MISFIT),
        ({"type": "array", "items": "long"}, [97], 7, MISFIT),
        ("double", 1e300, 10**400, MISFIT),
        (["null", "long", "string"], "a", 1.5, "a value of the field x does not fit the type long or string"),
        ({"type": "map", "values": "long"}, {"a": 1}, [("a", 1)], MISFIT),
    ],
)
def test_what_the_package_would_change_without_a_word_is_refused(
    schema: Any, kept: Any, lost: Any, words: str, tmp_path: Path
) -> None:
    sink = AvroSink(Shards(str(tmp_path / "out")), record("Element", x=schema))
    shard = avro_files(sink, "at step 'Write' (game.py:41)").open_shard(str(tmp_path / "shard"))
    with contextlib.closing(shard):
        shard.write([{"x": kept}])
        with pytest.raises(StepFailure) as caught:
            shard.write([{"x": lost}])
    failure = find_failure(str(caught.value))
    assert failure is not None
    assert words in str(to_exception(failure))
