"""What released versions have left half-way goes on with this one, or is refused by name."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock_spark.checkpoints.spark_state import pages_of_operator
from penstock_spark.process import written_formats as forms
from penstock_spark.session.spark_versions import version_of
from tests.spark import kept, lasting

MARKS = re.compile(r"checkpoint/holders/\d+\.(over|beat\.\d+)|checkpoint/inputs-\d+/[^/]+/pages/_SUCCESS")
"""Empty files whose names say everything, beside a file with a number."""

DATA = re.compile(r"checkpoint/inputs-\d+/[^/]+/pages/.*\.parquet")
"""What `_complete` beside it has the number of."""


def newer_sparks(folder: Path, spark: Any) -> bool:
    """True if a checkpoint was written by a newer Spark than this one."""
    plan = lasting.plan_in(folder / "checkpoint")
    return version_of(plan["spark"]) > version_of(spark.version)


@pytest.mark.parametrize("version", kept.VERSIONS)
def test_a_kept_checkpoint_goes_on_or_is_refused_by_name(version: str, spark: Any, tmp_path: Path) -> None:
    expected, refusal = kept.unpack(version, tmp_path), kept.refusal_of(version)
    if newer_sparks(tmp_path, spark):
        refusal = "a newer Spark wrote it"
    if refusal is not None:
        with pytest.raises(ValueError, match=re.escape(refusal)):
            lasting.start(tmp_path / "in", tmp_path)
        return
    assert lasting.start(tmp_path / "in", tmp_path).wait_until_finish() == "DONE"
    assert lasting.content_of(tmp_path) == expected


def staged_later(checkpoint: Path) -> None:
    [mark] = checkpoint.glob("inputs-*/*/_complete")
    mark.write_text('{"format": 9}')


def staged_before_there_were_numbers(checkpoint: Path) -> None:
    [mark] = checkpoint.glob("inputs-*/*/_complete")
    mark.write_text("")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (staged_later, "a newer penstock wrote the staged elements of a bounded source, in the format 9"),
        (
            staged_before_there_were_numbers,
            "no format number is stored with the staged elements of a bounded source",
        ),
    ],
)
def test_a_checkpoint_of_another_version_is_refused_by_name(
    change: Callable[[Path], None], says: str, spark: Any, tmp_path: Path
) -> None:
    kept.unpack(kept.VERSIONS[-1], tmp_path)
    if newer_sparks(tmp_path, spark):
        pytest.skip("a newer Spark wrote the checkpoint")
    change(tmp_path / "checkpoint")
    with pytest.raises(ValueError, match="hint: ") as refused:
        lasting.start(tmp_path / "in", tmp_path)
    assert says in str(refused.value)


def number_of(file: Path) -> Any:
    """The format number that a file begins with."""
    try:
        return json.loads(file.read_text()).get("format")
    except ValueError:
        return None


def test_every_file_of_a_checkpoint_has_a_format_number(tmp_path: Path) -> None:
    kept.unpack(kept.VERSIONS[-1], tmp_path)
    (tmp_path / "checkpoint" / "control").mkdir(exist_ok=True)
    found = {}
    for file in (tmp_path / "checkpoint").rglob("*"):
        name = str(file.relative_to(tmp_path))
        # What Spark writes has the numbers of Spark.
        if file.is_file() and not re.match(r"checkpoint/spark(-\d+)?/", name):
            found[name] = number_of(file)
    without = [name for name, number in found.items() if number is None]
    assert [name for name in without if not (MARKS.fullmatch(name) or DATA.fullmatch(name))] == []
    assert {re.sub(r"\d+|-.*", "", Path(name).name) for name in found} >= {"plan", ".json", "_complete"}


def test_every_page_of_state_has_a_format_number(spark: Any, tmp_path: Path) -> None:
    kept.unpack(kept.VERSIONS[-1], tmp_path)
    if newer_sparks(tmp_path, spark):
        pytest.skip("a newer Spark wrote the state")
    plan = lasting.plan_in(tmp_path / "checkpoint")
    location = f"file://{tmp_path}/checkpoint/{plan['folder']}"
    numbers: dict[Any, set[Any]] = {}
    for operator in range(len(plan["levels"])):
        for row in pages_of_operator(spark, location, operator).collect():
            mark = pickle.loads(row.content)[0]
            kind = forms.HEADER if not row.grouping else mark
            numbers.setdefault(kind, set()).add(mark)
    assert numbers == {
        forms.HEADER: {forms.HEADER.number},
        forms.KEY_PAGE.number: {forms.KEY_PAGE.number},
        f"columns {forms.COLUMN_PAGE.number}": {f"columns {forms.COLUMN_PAGE.number}"},
        forms.SEGMENT.number: {forms.SEGMENT.number},
        forms.WAITING_PAGE.number: {forms.WAITING_PAGE.number},
    }
