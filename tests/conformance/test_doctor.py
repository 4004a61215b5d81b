"""The doctor finds what is wrong with a machine, and says what to do."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from penstock_conformance import doctor
from penstock_conformance.command import main

Usage = namedtuple("Usage", ["total", "used", "free"])


@pytest.fixture(autouse=True)
def _is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "MASTER", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)


def test_a_machine_that_is_well_has_nothing_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--quick"]) == 0
    out = capsys.readouterr().out
    names = [line.split()[1] for line in out.splitlines() if not line.startswith(" ")]
    assert names[:5] == ["python", "penstock", "packages", "spark", "java"]
    assert "wrong" not in out
    assert "live, " in out


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("SPARK_HOME", "/no/such", "the folder does not exist"),
        ("PYSPARK_PYTHON", "/no/python", "there is no such program"),
    ],
)
def test_a_wrong_setting_is_named_and_no_pipeline_runs(
    name: str, value: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    assert main(["doctor"]) == doctor.WRONG
    out = capsys.readouterr().out
    assert f"wrong  setting   {name}={value}\n                 hint: {says}" in out
    assert out.endswith("no pipeline was run, because of what is wrong\n")


def test_another_spark_in_its_home_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "RELEASE").write_text("Spark 3.5.1 built for Hadoop 3.3.4\n")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert main(["doctor", "--quick"]) == doctor.WRONG
    assert "hint: it has Spark 3.5.1, and pyspark is " in capsys.readouterr().out


def test_missing_packages_and_a_full_disk_are_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name in ("pandas", "rich") else known(name))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(1, 1, 0))
    assert main(["doctor", "--quick"]) == doctor.WRONG
    out = capsys.readouterr().out
    assert "missing: pandas\n                 hint: run pip install pandas\n" in out
    assert "note   disk      0.0 GiB free in " in out
    assert "pip install 'penstock[" in out
    assert "live" in out.partition("absent")[2]
