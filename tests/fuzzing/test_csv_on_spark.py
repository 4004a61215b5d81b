"""CSV files through Spark's parser: every text that Python's own writer quotes comes back as it was."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.io import ReadFromCsv, WriteToMemory
from tests.fuzzing.chance import Chance

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

LETTERS = ["a", "b", " ", ",", ";", '"', "'", "#", "\\", "\t", "ä", "\U0001f600", "1", "-"]


def text(chance: Chance, more: list[str]) -> str:
    return "x" + "".join(chance.one_of(LETTERS + more) for _ in range(chance.randint(0, 6))) + "x"


def table(chance: Chance, more: list[str]) -> list[list[str]]:
    return [[text(chance, more) for _ in range(3)] for _ in range(chance.randint(1, 5))]


@pytest.mark.parametrize(
    ("splittable", "more"), [(True, []), (False, ["\n"])], ids=["lines", "line ends in quotes"]
)
@pytest.mark.parametrize("count", [40, pytest.param(2_000, marks=pytest.mark.soak)])
def test_the_texts_of_csv_files_come_back(
    tmp_path: Path, count: int, splittable: bool, more: list[str]
) -> None:
    written: list[tuple[Any, ...]] = []
    for seed in range(count):
        chance = Chance(seed)
        name, rows = f"{seed:06}.csv", table(chance, more)
        quoting = chance.one_of((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
        bom = "\ufeff" if chance.often(0.2) else ""
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
            file.write(bom)
            ends = chance.one_of(("\n", "\r\n"))
            csv.writer(file, quoting=quoting, lineterminator=ends).writerows([["a", "b", "c"], *rows])
        written += [(name, *row) for row in rows]
    read = ReadFromCsv(f"{tmp_path}/*.csv", splittable=splittable, filename_column="file", dtype=str)
    found: list[Any] = []
    with beam.Pipeline() as pipeline:
        rows_read = pipeline | read
        _ = (
            rows_read
            | beam.Map(lambda row: (Path(row.file).name, row.a, row.b, row.c))
            | WriteToMemory(found)
        )
    assert sorted(found) == sorted(written)
