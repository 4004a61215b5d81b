"""A standalone Spark cluster on this machine, and one program that runs on it.

A local master runs its tasks on the driver's own files and paths, so it hides what a program forgot to send
along. Here the driver is a program of its own and the workers are started with nothing of its environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.standalone import Cluster, standalone_cluster

collect_ignore = ["jobs"]
"""The programs in that folder are run, not imported: the modules beside them are found only then."""

_HERE = Path(__file__).parent
_HERE_ON = f"{_HERE}{os.sep}"
_PROGRAM = _HERE / "jobs" / "public_pipelines.py"
_JOB_SECONDS_MAX = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(_HERE_ON):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The one cluster of a test run."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def outcomes(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each part of the one program on the cluster came to: its start costs more than all of them.

    It is a process of its own, because a process has one Spark at a time, and the tests have theirs.
    """
    done = subprocess.run(
        [sys.executable, str(_PROGRAM), str(tmp_path_factory.mktemp("shared"))],
        env=cluster.driver_environment(),
        cwd=tmp_path_factory.mktemp("job"),
        capture_output=True,
        text=True,
        timeout=_JOB_SECONDS_MAX,
    )
    assert done.returncode == 0, f"it ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
