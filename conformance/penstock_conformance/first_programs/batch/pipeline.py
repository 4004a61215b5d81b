"""Adds up the revenue of each day, and sets aside the lines that are not orders.

python pipeline.py
"""

from pathlib import Path

import penstock as beam
from penstock.io import WriteToConsole
from penstock.options.pipeline_options import PipelineOptions

ORDERS = Path(__file__).with_name("data") / "orders.csv"


def parse(line: str) -> tuple[str, float]:
    """Returns the day and the revenue of an order.

    >>> parse("2026-03-02,tea,4.50,2")
    ('2026-03-02', 9.0)
    """
    day, _, price, quantity = line.split(",")
    return day, float(price) * int(quantity)


def revenue_by_day(
    lines: beam.PCollection[str],
) -> tuple[beam.PCollection[tuple[str, float]], beam.PCollection[str]]:
    """Returns the revenue of each day, and the lines that are not orders."""
    orders, failed = lines | "Parse" >> beam.Map(parse).with_exception_handling()
    revenue = orders | "Revenue" >> beam.CombinePerKey(sum)
    return revenue, failed | "Line" >> beam.Map(lambda failure: failure[0])


def run() -> None:
    with beam.Pipeline(options=PipelineOptions()) as pipeline:
        lines = pipeline | "Read" >> beam.io.ReadFromText(str(ORDERS), skip_header_lines=1)
        revenue, not_orders = revenue_by_day(lines)
        revenue | "Show" >> beam.MapTuple("{}: {:.2f}".format) | "Print" >> WriteToConsole()
        not_orders | "PrintOthers" >> WriteToConsole("not an order: ")


if __name__ == "__main__":
    run()
