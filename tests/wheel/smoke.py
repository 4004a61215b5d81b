"""What an installed wheel must be able to do: a batch, a stream and the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import FixedWindows, TimestampedValue

PARTS = ("penstock", "penstock_spark", "penstock_conformance", "penstock_figures")


def main() -> None:
    """Raises an error where the installation is not whole."""
    for part in PARTS:
        folder = Path(str(__import__(part).__file__)).parent
        assert (folder / "py.typed").exists(), folder
        assert Path(sys.prefix) in folder.parents, f"{part} is imported from {folder}, not from the wheel"
    for mode in ("batch", "streaming"):
        with beam.Pipeline(options=PipelineOptions(mode=mode, fast_start=True)) as pipeline:
            sums = (
                pipeline
                | beam.Create([("a", 1, 5), ("a", 2, 15), ("b", 3, 70)])
                | "AtItsTime"
                >> beam.MapTuple(lambda key, value, second: TimestampedValue((key, value), second))
                | beam.WindowInto(FixedWindows(60))
                | beam.CombinePerKey(sum)
            )
            assert_that(sums, equal_to([("a", 3), ("b", 3)]))
    listed = subprocess.run(
        [sys.executable, "-m", "penstock", "--help"], check=True, capture_output=True, text=True
    )
    assert "conformance" in listed.stdout
    print("the wheel works")


if __name__ == "__main__":
    main()
