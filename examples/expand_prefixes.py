"""Replays the first example of the Dataflow Model paper: the values of each prefix of the keys.

The paper (section 2.1) uses (fix, 1) and (fit, 2) to show its two primitives: ParDo, which processes each element,
and GroupByKey, which collects the values of a key.

    python examples/expand_prefixes.py --pairs fix=1,fit=2
"""

from __future__ import annotations

import argparse

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions


class ExpandPrefixes(beam.DoFn):
    """Gives each prefix of the key, with the value."""

    def process(self, element):
        key, value = element
        for length in range(1, len(key) + 1):
            yield key[:length], value


def values_by_prefix(pairs):
    """Collects, for each prefix, the values of all keys that begin with it."""
    return (
        pairs
        | "ExpandPrefixes" >> beam.ParDo(ExpandPrefixes())
        | beam.GroupByKey()
        | "SortValues" >> beam.MapTuple(lambda prefix, values: (prefix, sorted(values)))
    )


def parse(text):
    """Parses a text such as ``fix=1,fit=2`` into pairs."""
    pairs = (pair.split("=") for pair in text.split(","))
    return [(key, int(value)) for key, value in pairs]


def run(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=parse, default="fix=1,fit=2", help="the input, as in the paper")
    known, rest = parser.parse_known_args(argv)
    with beam.Pipeline(options=PipelineOptions(rest)) as pipeline:
        pairs = pipeline | beam.Create(known.pairs)
        values_by_prefix(pairs) | beam.Map(print)


if __name__ == "__main__":
    run()
