"""A program that a test kills and starts again: streams of scores into files and tables of several formats at once.

Arguments: a folder that has the input ``in``, and gets an output and a checkpoint for each format. If the program shall
die: also the name of each format with a number and a moment, which mean what they mean to the program of that format
alone. It dies when all these streams are at their moments.
"""

from __future__ import annotations

import sys
from pathlib import Path

import penstock as beam
from tests.connectors import delta_program, files_program, iceberg_program, power_cuts

FORMATS = ("parquet", "orc", "delta", "iceberg")


def kill_at(folder: str, kind: str, number: int, moment: str) -> None:
    """Lets the stream of one format wait for the power cut."""
    if kind == "delta":
        delta_program.kill_at(moment, number)
    elif kind == "iceberg":
        iceberg_program.kill_at(number, moment)
    else:
        files_program.kill_at(f"{folder}/{kind}/", number, moment)


def pipelines(folder: Path | str) -> list[beam.Pipeline]:
    """One for each format."""
    found = []
    for kind in FORMATS:
        ends = f"{folder}/in", f"{folder}/{kind}", f"{folder}/checkpoint of {kind}"
        if kind == "delta":
            found.append(delta_program.build("append", *ends))
        elif kind == "iceberg":
            found.append(iceberg_program.build("append", *ends))
        else:
            found.append(files_program.build(kind, *ends))
    return found


def run(folder: Path | str) -> None:
    """Runs the streams at once, to their ends or until they die."""
    for result in [pipeline.run() for pipeline in pipelines(folder)]:
        result.wait_until_finish()


if __name__ == "__main__":
    folder, *moments = sys.argv[1:]
    power_cuts.expect(len(moments) // 3)
    for place in range(0, len(moments), 3):
        kill_at(folder, moments[place], int(moments[place + 1]), moments[place + 2])
    run(folder)
