"""A Spark that pipelines do not run on is refused before any part of it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PIPELINE = """
import penstock as beam
try:
    (beam.Pipeline() | beam.Create([1])).pipeline.run()
except Exception as error:
    print(type(error).__name__)
    print(error)
"""


_RANGE = "penstock runs on Spark 4.0 to 4.3"
_RANGE_TO_INSTALL = "pip install 'pyspark>=4.0,<4.4'"


@pytest.mark.parametrize(
    ("package", "what", "install"),
    [
        ('__version__ = "3.5.3"', f"{_RANGE}, but this is Spark 3.5.3", _RANGE_TO_INSTALL),
        ('__version__ = "4.4.0.dev2"', f"{_RANGE}, but this is Spark 4.4.0.dev2", _RANGE_TO_INSTALL),
        (
            "raise ImportError('no')",
            "penstock needs PySpark, which is not installed",
            "pip install 'penstock[java]' for Spark and a Java, or 'penstock[spark]' with your own Java, or "
            "'penstock[client]' if a server",
        ),
    ],
    ids=["older", "newer", "none"],
)
def test_another_spark_is_refused_by_name_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, what: str, install: str
) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text(package)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", _PIPELINE], capture_output=True, text=True, check=True)
    kind, said, where, hint = done.stdout.splitlines()
    assert (kind, said) == ("UnsupportedByRunner", what)
    assert where.startswith("  in ")
    assert hint.startswith("  hint: ")
    assert install in hint
