"""The jobs in SQL over the data of the examples, as they stand."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.sql.jobs.running import Job

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS_MAX = 120


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the jobs find the data, and write beside it."""
    for name in ("clicks", "orders"):
        shutil.copytree(EXAMPLES / "data" / name, tmp_path / "examples" / "data" / name)
    shutil.copy(EXAMPLES / "data" / "countries.csv", tmp_path / "examples" / "data")
    monkeypatch.chdir(tmp_path)


def parquet_of(folder: Path) -> list[tuple[Any, ...]]:
    return sorted(
        tuple(row.values()) for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist()
    )


def json_of(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("*.json")):
        yield from map(json.loads, file.read_text().splitlines())


def counted(folder: Path) -> list[tuple[Any, ...]]:
    """The hours, counted by hand."""
    clicks: dict[tuple[str, str], list[str]] = {}
    for click in json_of(folder):
        if click["at"].startswith("2026"):
            clicks.setdefault((click["at"][11:13], click["page"]), []).append(click["user"])
    return sorted((hour, page, len(users), len(set(users))) for (hour, page), users in clicks.items())


def test_clicks_are_counted_by_the_hour(tmp_path: Path) -> None:
    started = Job((EXAMPLES / "clicks.sql").read_text(), "clicks.sql").start()
    assert started is not None
    out, deadline = tmp_path / "hourly_clicks", time.monotonic() + SECONDS_MAX
    while not list(out.glob("hours/*.parquet")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    started.drain()
    started.wait_until_finish()
    rows = [(f"{hour:%H}", *rest) for hour, *rest in parquet_of(out / "hours")]
    assert rows == counted(tmp_path / "examples" / "data" / "clicks")
    assert len(rows) > 5
    [rejected] = json_of(out / "rejects")
    assert "yesterday" in rejected["record"]


def test_orders_get_the_names_of_countries(tmp_path: Path) -> None:
    lines: list[str] = []
    Job((EXAMPLES / "orders.sql").read_text(), "orders.sql", show=lines.append).run()
    out = tmp_path / "orders_out"
    placed = [row[:4] for row in parquet_of(out / "placed")]
    assert placed == [
        (1, "Germany", "Europe", Decimal("20.50")),
        (2, "France", "Europe", Decimal("99.90")),
        (5, "Germany", "Europe", Decimal("7.25")),
    ]
    assert list(json_of(out / "lost")) == [{"id": 4, "country": "xx"}]
    assert [each["record"] for each in json_of(out / "lines")] == ["3,fr,ten,2026-01-01T09:02:00Z", "6,de"]
    assert lines == [
        "region | orders | amount",
        "-------+--------+-------",
        "Europe | 3      | 127.65",
        "(1 row)",
    ]
