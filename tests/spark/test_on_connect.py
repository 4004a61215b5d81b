"""A selection of the tests of pipelines runs once more, in a session of Spark Connect."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_TESTS = (
    *("test_exact_division.py", "test_regex.py", "test_bundle_finalizers.py"),
    "test_native_streams_on_spark.py::test_a_stream_continues_on_its_checkpoint_and_drains[append]",
    "test_sources_csv_json.py::test_a_malformed_record_is_found_if_nobody_reads_its_fields",
    "test_connect_servers.py::test_a_checkpoint_that_workers_do_not_see_is_refused",
    "test_connect_servers.py::test_a_session_that_shares_its_files_leaves_nothing_that_ends_the_tasks_of_others",
)


@pytest.mark.long
@pytest.mark.spark
def test_pipelines_run_on_a_server_of_spark_connect() -> None:
    """All others run on request: ``pytest tests --connect``."""
    files = [str(_ROOT / "tests" / "spark" / name) for name in _TESTS]
    options = ("-p", "no:cacheprovider", "-p", "no:xdist", "--connect")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1_200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= len(_TESTS)
    assert "skipped" not in done.stdout
