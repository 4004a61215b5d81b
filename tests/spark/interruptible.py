"""A program that tests interrupt or whose Java they kill. Arguments: batch, stream, both or streams, the URL or
the path of a folder, further options.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Iterable
from pathlib import Path

import penstock as beam
from penstock.error import RunnerError
from penstock.io.external.generate_sequence import GenerateSequence
from penstock.transforms.window import FixedWindows


def main(kind: str, folder: str, *options: str) -> None:
    """Runs until somebody ends it."""
    if kind == "both":
        stream = pipeline_of("stream", folder, options).run()
        while not list(_path(folder).glob("out/o-batch-*")):
            time.sleep(0.05)
        try:
            main("batch", f"{folder}/batch", *options)
        except RunnerError as error:
            print(error, flush=True)
        stream.wait_until_finish()
        return
    if kind == "streams":
        main("stream", folder, *options)
        main("stream", f"{folder}/second", *options[1:])
        return
    with pipeline_of(kind, folder, options) as pipeline:
        pass
    print("went on", pipeline.result.state, flush=True)


def _path(folder: str) -> Path:
    return Path(folder.removeprefix("file://"))


def pipeline_of(kind: str, folder: str, options: Iterable[str]) -> beam.Pipeline:
    """A batch that takes long, or a stream without an end."""
    begun = _path(folder) / "begun"

    def slow(value: int) -> int:
        begun.parent.mkdir(exist_ok=True)
        begun.touch()
        time.sleep(0.2)
        return value

    pipeline = beam.Pipeline(argv=["--master=local[2]", "--fast_start", *options])
    if kind == "batch":
        values = pipeline | beam.Create(range(10_000)) | beam.Map(slow)
    else:
        numbers = pipeline | GenerateSequence(start=0, elements_per_period=1, period=0.1)
        values = numbers | beam.WindowInto(FixedWindows(1)) | beam.CombineGlobally(sum).without_defaults()
    _ = values | beam.io.WriteToText(f"{folder}/out/o")
    return pipeline


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except RunnerError:
        traceback.print_exc()
        # A program, or a notebook, may go on.
        with beam.Pipeline(argv=["--master=local[1]", "--fast_start"]) as small:
            _ = (
                small
                | beam.Create([1, 2])
                | beam.CombineGlobally(sum)
                | beam.Map(lambda total: print("sum", total, flush=True))
            )
        main("batch", f"{sys.argv[2]}/next")
