"""A selection of the tests of pipelines runs once more, in a session of Spark Connect."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_MODULES = ("test_exact_division", "test_regex", "test_bundle_finalizers")


@pytest.mark.long
@pytest.mark.spark
def test_pipelines_run_on_a_server_of_spark_connect() -> None:
    """All modules that pass there run on request: ``pytest tests/spark --connect``."""
    files = [str(_ROOT / "tests" / "spark" / f"{name}.py") for name in _MODULES]
    options = ("-p", "no:cacheprovider", "-p", "no:xdist", "--connect")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 3
    assert "skipped" not in done.stdout
