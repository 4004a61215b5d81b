"""Splits of files: however a file is cut, each record is in one of them, and whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_spark.files import splits
from penstock_spark.files.splits import Split, blocks_of

records = st.lists(st.sampled_from([b"", b"a", b"bc", b"defg" * 3]), max_size=12)


@given(records, st.booleans(), st.integers(1, 9), st.integers(1, 7))
def test_each_record_is_in_one_split_and_whole(
    tmp_path_factory, found, ends, split_bytes, block_bytes
) -> None:
    content = b"\n".join(found) + (b"\n" if ends and found else b"")
    path = tmp_path_factory.getbasetemp() / "records.txt"
    path.write_bytes(content)
    whole = content.split(b"\n")
    whole = whole if whole[-1] else whole[:-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "BLOCK_BYTES", block_bytes)
        read = []
        for start in range(0, len(content), split_bytes):
            end = min(start + split_bytes, len(content))
            for block in blocks_of(Split(str(path), "", start, end), b"\n"):
                own = block.split(b"\n")
                read += own if own[-1] else own[:-1]
    assert read == whole


@pytest.mark.parametrize("sizes", [[], [5], [3, 9, 1, 1, 1, 7], [10] * 4])
def test_small_splits_are_read_together_and_large_ones_alone(sizes: list[int]) -> None:
    given_splits = [Split(f"/{number}", "", 0, size) for number, size in enumerate(sizes)]
    tasks = splits._distribute_splits(given_splits, 10, 2)
    assert sorted(split for task in tasks for split in task) == sorted(given_splits)
    assert all(len(task) == 1 or sum(split.end + 2 for split in task) <= 12 for task in tasks)


MB = 1 << 20


@pytest.mark.parametrize(
    ("sizes", "parallelism", "tasks"),
    [
        ([10] * 20_000, 2, 10),
        ([10] * 8, 4, 4),
        ([3 * MB], 8, 1),
        ([3 * MB] * 2, 2, 2),
        ([100 * MB], 4, 4),
        ([1000 * MB], 4, 8),
        ([0] * 5, 2, 0),
    ],
)
def test_many_small_files_take_few_tasks_and_a_few_files_take_all_cores(
    sizes: list[int], parallelism: int, tasks: int
) -> None:
    files = [Split(f"/{number}", "", 0, size) for number, size in enumerate(sizes)]
    found = splits.group_splits(files, parallelism, 128 * MB, 4 * MB, 64 << 10)
    assert len(found) == tasks
    assert sum(split.end - split.start for task in found for split in task) == sum(sizes)
    assert max((len(task) for task in found), default=0) <= 2100


def test_headers_end_where_the_last_of_them_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"one\ntwo\nthree")
    ends = [splits._end_of_records(str(path), b"\n", count) for count in (1, 2, 3)]
    assert ends == [4, 8, 13]
