"""Sums events of text files by team and window with PyFlink; run by the benchmark of peers, with a Python that has it.

Arguments: ``sql``, where Flink parses lines itself, or ``python``, where a function of Python does; the folder of the
files; the folder to write. It prints its seconds, without imports.
"""

from __future__ import annotations

import sys
import time

from pyflink.common import Row
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udf

SLOTS = 2
KEPT_FROM = 20

_FILES = "WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{form}')"
_COLUMNS = {
    "sql": "`user` STRING, team STRING, amount BIGINT, `second` BIGINT, event_time AS TO_TIMESTAMP_LTZ(`second`, 0)",
    "python": "line STRING, found AS parsed(line), event_time AS TO_TIMESTAMP_LTZ(parsed(line).`second`, 0)",
}
_FORMS = {"sql": "csv", "python": "raw"}
_EVENTS = (
    "CREATE TABLE events ({columns}, WATERMARK FOR event_time AS event_time - INTERVAL '2' MINUTES) {files}"
)
_TOTALS = "CREATE TABLE totals (team STRING, `start` BIGINT, total BIGINT) {files}"
_SUMS = """
    INSERT INTO totals
    SELECT {of}team, UNIX_TIMESTAMP(DATE_FORMAT(window_start, 'yyyy-MM-dd HH:mm:ss')), SUM({of}amount * 2 + 1)
    FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(event_time), INTERVAL '2' MINUTES))
    WHERE {of}amount >= {kept_from} GROUP BY {of}team, window_start, window_end
"""
_EVENT = DataTypes.ROW(
    [
        DataTypes.FIELD("team", DataTypes.STRING()),
        DataTypes.FIELD("amount", DataTypes.BIGINT()),
        DataTypes.FIELD("second", DataTypes.BIGINT()),
    ]
)


@udf(result_type=_EVENT)
def parsed(line: str) -> Row:
    """The team, amount and second of a line."""
    _, team, amount, second = line.split(",")
    return Row(team, int(amount), int(second))


def run(way: str, source: str, target: str) -> None:
    """Runs the query in a small cluster of its own."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "parallelism.default": str(SLOTS),
        "table.local-time-zone": "UTC",
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
    }
    for name, value in settings.items():
        tables.get_config().set(name, value)
    tables.create_temporary_system_function("parsed", parsed)
    files = _FILES.format(path=source, form=_FORMS[way])
    tables.execute_sql(_EVENTS.format(columns=_COLUMNS[way], files=files))
    tables.execute_sql(_TOTALS.format(files=_FILES.format(path=target, form="csv")))
    of = "found." if way == "python" else ""
    tables.execute_sql(_SUMS.format(of=of, kept_from=KEPT_FROM)).wait()


if __name__ == "__main__":
    began = time.perf_counter()
    run(*sys.argv[1:])
    print(time.perf_counter() - began)
