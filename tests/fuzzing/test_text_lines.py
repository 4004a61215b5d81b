"""Lines of text: however a file is cut into splits, blocks and chunks, its lines are the same."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.io.formats.record_splitter import split_records
from penstock.io.formats.text_source import TextSource
from penstock_spark.files import splits
from penstock_spark.files.splits import Split
from penstock_spark.formats.text.scan import SplitReader
from penstock_spark.reports.failure import StepFailure, find_failure, to_exception
from tests.fuzzing.chance import Chance
from tests.fuzzing.refused import each_seed, result_or_refusal, seeds

ENDS = [b"\n", b"\n", b"\r\n", b"\r"]
PIECES = [*ENDS, b"a", b"bc", b"", BOM_UTF8, "ä\U0001f600".encode(), b",", b'"', b"\x00", b"x" * 70]


def plain_lines(content: bytes, delimiter: bytes | None, skip: int) -> list[bytes]:
    """The lines, in the simplest words."""
    content = content.removeprefix(BOM_UTF8)
    lines = content.split(delimiter or b"\n")
    if not lines[-1]:
        lines.pop()
    if delimiter is None:
        ended = len(lines) - (not content.endswith(b"\n"))
        lines = [line.removesuffix(b"\r") if at < ended else line for at, line in enumerate(lines)]
    return lines[skip:]


def cut(chance: Chance, content: bytes) -> list[bytes]:
    places = sorted(chance.randint(0, len(content)) for _ in range(chance.randint(0, 5)))
    return [content[start:end] for start, end in zip([0, *places], [*places, len(content)], strict=True)]


@seeds(400, 20_000)
def test_every_cut_of_a_file_gives_the_same_records(count: int) -> None:
    def law(chance: Chance) -> None:
        content = b"".join(chance.one_of(PIECES) for _ in range(chance.randint(0, 20)))
        delimiter = chance.one_of((None, None, b"\n", b",", b"\r\n", b"bc"))
        skip = chance.one_of((0, 0, 1, 3))
        expected = plain_lines(content, delimiter, skip)
        assert list(split_records(cut(chance, content), delimiter=delimiter, skip=skip)) == expected
        strict = list(split_records(cut(chance, content), delimiter=delimiter, strip=False))
        assert b"".join(strict) == content.removeprefix(BOM_UTF8)

    each_seed(count, law)


@seeds(200, 10_000)
def test_every_split_of_a_file_gives_the_same_lines(tmp_path: Path, count: int) -> None:
    path = tmp_path / "lines.txt"

    def law(chance: Chance) -> None:
        content = b"".join(chance.one_of(PIECES) for _ in range(chance.randint(0, 25)))
        delimiter = chance.one_of((None, None, b",", b"\x00"))
        path.write_bytes(content)
        size = chance.randint(1, 40)
        # The task reads the splits one after the other; a header would be cut off where the splits are made.
        parts = tuple(
            Split(str(path), "lines.txt", start, min(start + size, len(content)))
            for start in range(0, len(content), size)
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(splits, "BLOCK_BYTES", chance.randint(1, 30))
            reader = SplitReader(TextSource("lines.txt", delimiter=delimiter), (parts,), "at step 'Read'")
            found = [line for lines in reader(pa.RecordBatch.from_pydict({"id": [0]})) for line in lines]
        assert found == [line.decode() for line in plain_lines(content, delimiter, 0)]

    each_seed(count, law)


@seeds(200, 10_000)
def test_text_that_is_not_utf8_is_refused_wherever_the_file_is_cut(tmp_path: Path, count: int) -> None:
    path = tmp_path / "lines.txt"

    def law(chance: Chance) -> None:
        content = chance.damaged(b"".join(chance.one_of(PIECES) for _ in range(20)))
        path.write_bytes(content)
        parts = (Split(str(path), "lines.txt", 0, len(content)),)
        reader = SplitReader(TextSource("lines.txt"), (parts,), "at step 'Read' (game.py:1)")

        def lines() -> list[str]:
            try:
                return [line for lines in reader(pa.RecordBatch.from_pydict({"id": [0]})) for line in lines]
            except StepFailure as failed:
                failure = find_failure(str(failed))
                assert failure is not None
                raise to_exception(failure) from None

        read = result_or_refusal(lines)
        try:
            expected = [line.decode() for line in plain_lines(content, None, 0)]
        except UnicodeDecodeError:
            assert read is None
        else:
            assert read == (expected,)

    each_seed(count, law)
