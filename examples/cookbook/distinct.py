"""Removes repetitions: of whole elements, and of elements that have the same key."""

from __future__ import annotations

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions

VISITS = [
    ("ann", "/home"),
    ("ben", "/home"),
    ("ann", "/prices"),
    ("ann", "/home"),
]


def distinct_visits(visits):
    """Gives each visit once, however often it is in the input."""
    return visits | beam.Distinct()


def visited_pages(visits):
    """Gives each visitor once, with the sorted set of pages."""
    return (
        visits
        | "SetPerVisitor" >> beam.CombinePerKey(beam.combiners.ToSetCombineFn())
        | "Sort" >> beam.MapTuple(lambda visitor, pages: (visitor, sorted(pages)))
    )


def run(argv=None):
    with beam.Pipeline(options=PipelineOptions(argv)) as pipeline:
        visits = pipeline | beam.Create(VISITS)
        distinct_visits(visits) | "PrintVisits" >> beam.Map(print)
        visited_pages(visits) | "PrintPages" >> beam.Map(print)


if __name__ == "__main__":
    run()
