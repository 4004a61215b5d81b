"""Counts the words of a text, writes the counts to files and prints the most frequent words.

python examples/wordcount.py --input 'books/*.txt' --output out/wordcount/counts --top 20
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions

TEXT = Path(__file__).parent / "data" / "lear.txt"
WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")


def words(line):
    """Splits a line into words, in lower case.

    >>> words("O! O! 'tis foul: nature's moulds")
    ['o', 'o', 'tis', 'foul', "nature's", 'moulds']
    """
    return [word.lower() for word in WORD.findall(line)]


def rank(counted):
    """Sorts frequent words before rare ones, and equally frequent ones by the alphabet."""
    word, count = counted
    return -count, word


def run(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--input", default=str(TEXT), help="the text files; * and ? are wildcards")
    parser.add_argument("--output", default="out/wordcount/counts", help="what the files' names begin with")
    parser.add_argument("--top", type=int, default=10, help="how many words to print")
    known, rest = parser.parse_known_args(argv)
    top_file = Path(f"{known.output}-top.txt")

    with beam.Pipeline(options=PipelineOptions(rest)) as pipeline:
        counts = (
            pipeline
            | beam.io.ReadFromText(known.input)
            | "Words" >> beam.FlatMap(words)
            | beam.combiners.Count.PerElement()
        )
        counts | "Lines" >> beam.MapTuple("{}\t{}".format) | beam.io.WriteToText(known.output, ".tsv")
        (
            counts
            | beam.combiners.Top.Of(known.top, key=rank, reverse=True)
            | "Table" >> beam.Map(lambda best: "\n".join(f"{count:8}  {word}" for word, count in best))
            | "WriteTop" >> beam.io.WriteToText(str(top_file), shard_name_template="")
        )

    print(top_file.read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    run()
