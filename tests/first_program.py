"""A program with a small batch and a small stream, whose Java archives its classes for the programs that follow."""

from __future__ import annotations

import sys
from pathlib import Path

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions


def main(folder: Path) -> None:
    (folder / "words.txt").write_text("one\ntwo\n")
    for mode in ("batch", "streaming"):
        with beam.Pipeline(options=PipelineOptions([f"--mode={mode}", "--progress=off"])) as pipeline:
            _ = (
                pipeline
                | beam.io.ReadFromText(str(folder / "*.txt"))
                | beam.Map(lambda word: (word, 1))
                | beam.WindowInto(beam.window.FixedWindows(60))
                | beam.GroupByKey()
                | "Words" >> beam.Map(lambda counted: counted[0])
                | beam.io.WriteToText(str(folder / mode))
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
