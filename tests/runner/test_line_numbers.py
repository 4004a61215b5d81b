"""The numbers of lines in parts of files, by all places at which a file can be cut."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from penstock.io.formats.text_source import TextSource
from penstock.io.rejects import Rejected
from penstock_spark.files.splits import Split
from penstock_spark.formats.text.scan import SplitReader
from penstock_spark.sources import line_numbers
from penstock_spark.sources.line_numbers import LineCounter, lines_before


def contents(seed: int) -> bytes:
    chance = random.Random(seed)
    return b"".join(chance.choice([b"a", b"bb", b"\n", b"\r\n", b"\r", b"||", b"\xff"]) for _ in range(40))


@pytest.mark.parametrize("delimiter", [None, b"\n", b"||"], ids=str)
@pytest.mark.parametrize("block_bytes", [3, 4 << 20])
def test_a_line_that_begins_behind_a_place_has_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delimiter: bytes | None, block_bytes: int
) -> None:
    monkeypatch.setattr(line_numbers, "_BLOCK_BYTES", block_bytes)
    ends = rb"\r\n|\n|\r" if delimiter is None else re.escape(delimiter)
    for seed in range(20):
        content = contents(seed)
        path = tmp_path / f"{seed} %.txt"
        path.write_bytes(content)
        begins = [0, *(found.end() for found in re.finditer(ends, content))]
        for start in range(1, len(content) + 1):
            expected = sum(begin <= start for begin in begins)
            name = f"file://{str(path).replace(' %', '%20%25')}"
            assert lines_before(name, start, delimiter) == expected, (seed, start)
            assert LineCounter(delimiter).rows(name, start, 5).number(2) == expected + 3


def test_parts_that_a_task_cannot_count_have_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.bz2").write_bytes(b"a\nb\n")
    for name in (f"file://{tmp_path}/a.bz2", f"file://{tmp_path}/none", "hdfs://host/a"):
        assert lines_before(name, 2) is None
        assert LineCounter().rows(name, 0, 1).number(0) == 1, "the first part needs no counting"


@pytest.mark.parametrize("delimiter", [None, b"|"], ids=str)
def test_a_rejected_line_of_a_split_has_the_number_that_the_whole_file_gives_it(
    tmp_path: Path, delimiter: bytes | None
) -> None:
    path, end = tmp_path / "a.txt", delimiter or b"\n"
    for seed in range(20):
        content = contents(seed).replace(b"||", b"|")
        path.write_bytes(content)
        lines = content.removesuffix(end).split(end)
        expected = [number for number, line in enumerate(lines, 1) if b"\xff" in line]
        source = TextSource(str(path), delimiter=delimiter)
        for cut in range(1, len(content)):
            splits = [Split(str(path), str(path), 0, cut), Split(str(path), str(path), cut, len(content))]
            reader = SplitReader(source, [splits], "", has_rejects=True)
            found = [value for split in splits for values in reader.read(split) for value in values]
            assert len(found) == len(lines)
            assert [each.record.line for each in found if isinstance(each, Rejected)] == expected, (seed, cut)
