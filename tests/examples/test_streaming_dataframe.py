"""The example with a streaming DataFrame on both sides."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession


def test_totals_of_minutes_continue_with_the_next_file(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = importlib.import_module("streaming_dataframe")
    before = {name: spark.conf.get(name, None) for name in example.SETTINGS}
    folder = tmp_path / "in"
    folder.mkdir()
    arguments = [f"--input={folder}", f"--output={tmp_path / 'out'}"]
    try:
        for number, minutes in enumerate(((0, 1), (1, 9))):
            lines = [f'{{"team": "red", "points": 3, "at": "2026-01-01T00:0{at}:05Z"}}\n' for at in minutes]
            (folder / f"{number}.json").write_text("".join(lines))
            example.run(arguments)
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
    rows = [line for line in capsys.readouterr().out.splitlines() if "red" in line]
    assert [line.replace(" ", "") for line in rows[-2:]] == ["|red|1767225600|3|", "|red|1767225660|6|"]
