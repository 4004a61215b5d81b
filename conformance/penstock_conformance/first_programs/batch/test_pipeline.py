"""The revenue of each day is right, and lines that are not orders are set aside."""

from pipeline import parse, revenue_by_day

import penstock as beam
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to


def test_the_revenue_of_an_order_is_its_price_times_its_quantity() -> None:
    assert parse("2026-03-02,tea,4.50,2") == ("2026-03-02", 9.0)


def test_revenue_is_added_up_by_day_without_lines_that_are_not_orders() -> None:
    lines = ["monday,tea,1.50,2", "tuesday,tea,1.50,1", "monday,honey,9.00,1", "monday,honey"]
    with TestPipeline() as pipeline:
        revenue, not_orders = revenue_by_day(pipeline | beam.Create(lines))
        assert_that(revenue, equal_to([("monday", 12.0), ("tuesday", 1.5)]), label="Revenue")
        assert_that(not_orders, equal_to(["monday,honey"]), label="NotOrders")
