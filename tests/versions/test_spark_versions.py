"""Some tests that start Spark run once more, with each other version of Spark that pipelines run on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock_spark.session.spark_versions import NEWEST, OLDEST

_ROOT = Path(__file__).parents[2]
_TESTS = _ROOT / "tests" / "spark"
_FEWEST = 15
"""So many tests have the mark at least."""

_EARLIER = [f"{OLDEST[0]}.{minor}" for minor in range(OLDEST[1], NEWEST[1])]
"""The versions that are not installed for the other tests."""


@pytest.fixture(scope="module")
def version(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with another version of PySpark, to import from before what is installed."""
    folder = tmp_path_factory.mktemp("version")
    asked = f"pyspark=={request.param}.*"
    # Python compiles what the tests import; pip would compile all of it.
    flags = ("--quiet", "--no-deps", "--no-compile", "--target", str(folder))
    command = [sys.executable, "-m", "pip", "install", *flags, asked]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{asked} cannot be installed:\n{done.stderr}"
    return folder


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.parametrize("version", _EARLIER, indirect=True)
def test_each_spark_passes_what_every_spark_has_to_pass(version: Path) -> None:
    paths = [str(version), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("SPARK_HOME", None)
    arguments = (
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        # Without the word, the long tests would be left out.
        "every_spark and (soak or not soak)",
        # The other files would only be imported.
        *(str(path) for path in sorted(_TESTS.rglob("test_*.py")) if "every_spark" in path.read_text()),
    )
    done = subprocess.run(
        [sys.executable, *arguments], cwd=_ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= _FEWEST


def test_the_versions_of_the_workflow_are_those_that_pipelines_run_on() -> None:
    text = (_ROOT / ".github/workflows/spark-versions.yml").read_text()
    (listed,) = re.findall(r"^ +spark: \[(.*)\]$", text, re.MULTILINE)
    (major, first), (_, last) = OLDEST, NEWEST
    assert re.findall(r'"(.*?)"', listed) == [f"{major}.{minor}" for minor in range(first, last + 1)]
    assert f'"pyspark>={major}.{first},<{major}.{last + 1}"' in (_ROOT / "pyproject.toml").read_text()
