"""Sends elements to several outputs from one DoFn: short words, long words, and the lengths of all."""

from __future__ import annotations

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions

WORDS = ["a", "river", "is", "a", "patient", "clockmaker"]


class SplitByLength(beam.DoFn):
    """Sends short words to the main output, and long words and all lengths to outputs of their own."""

    LONG = "long"
    LENGTHS = "lengths"

    def process(self, word, short_is=4):
        yield beam.pvalue.TaggedOutput(self.LENGTHS, len(word))
        if len(word) <= short_is:
            yield word
        else:
            yield beam.pvalue.TaggedOutput(self.LONG, word)


def split(words):
    """Gives the three outputs, as attributes ``short``, ``long`` and ``lengths``."""
    return words | beam.ParDo(SplitByLength()).with_outputs(
        SplitByLength.LONG, SplitByLength.LENGTHS, main="short"
    )


def run(argv=None):
    with beam.Pipeline(options=PipelineOptions(argv)) as pipeline:
        outputs = split(pipeline | beam.Create(WORDS))
        outputs.short | "Short" >> beam.Map(lambda word: print("short:", word))
        outputs.long | "Long" >> beam.Map(lambda word: print("long:", word))
        letters = outputs.lengths | beam.CombineGlobally(sum)
        letters | "Letters" >> beam.Map(lambda number: print("letters:", number))


if __name__ == "__main__":
    run()
