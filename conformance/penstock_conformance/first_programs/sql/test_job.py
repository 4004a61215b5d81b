"""The job prints the revenue of each day, and the best products."""

import shutil
from pathlib import Path

import pytest

from penstock.sql.jobs.running import Job

HERE = Path(__file__).parent
JOB = (HERE / "job.sql").read_text(encoding="utf-8")


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that the job prints in a copy of this folder."""
    shutil.copytree(HERE / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    lines: list[str] = []
    Job(JOB, "job.sql", show=lines.append).run()
    return lines


def test_all_statements_fit_together() -> None:
    Job(JOB.partition("INSERT")[0] + "DESCRIBE sales", "job.sql", show=lambda line: None).run()


def test_days_come_in_order_and_the_best_product_first(printed: list[str]) -> None:
    assert printed[2:5] == [
        "2026-03-02 | 2      | 16.25",
        "2026-03-03 | 2      | 31.50",
        "2026-03-04 | 1      | 14.50",
    ]
    assert printed[-3].startswith("honey")
