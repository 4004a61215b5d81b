"""Passes side inputs to functions: as one value, as a dictionary and as a list."""

from __future__ import annotations

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
from penstock.pvalue import AsDict, AsList, AsSingleton

ORDERS = [("tea", 3), ("cup", 1), ("pen", 2), ("tea", 1)]
PRICES = [("tea", 5), ("cup", 8)]
GIFTS = ["cup"]


def charge(order, prices, gifts, rate):
    """Gives the cost of an order in cents, and no output for a gift or an article without a price."""
    article, count = order
    cents = 0 if article in gifts else round(100 * rate * count * prices.get(article, 0))
    return article, cents


def charges(orders, prices, gifts, rate):
    """Gives the cost of each order in cents, with prices in another currency."""
    return orders | "Charge" >> beam.Map(
        charge, prices=AsDict(prices), gifts=AsList(gifts), rate=AsSingleton(rate)
    )


def run(argv=None):
    with beam.Pipeline(options=PipelineOptions(argv)) as pipeline:
        orders = pipeline | "Orders" >> beam.Create(ORDERS)
        prices = pipeline | "Prices" >> beam.Create(PRICES)
        gifts = pipeline | "Gifts" >> beam.Create(GIFTS)
        rate = pipeline | "Rate" >> beam.Create([1.25])
        charges(orders, prices, gifts, rate) | beam.Map(print)


if __name__ == "__main__":
    run()
