"""Transcripts on a cluster in both modes of streams: the workers know nothing of penstock or of the suite."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_JOBS = Path(__file__).parent / "jobs"


@pytest.fixture(scope="session")
def outcomes(
    run_on_cluster: Callable[..., subprocess.CompletedProcess[str]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """The number of transcripts and what was wrong, by mode."""
    shared = tmp_path_factory.mktemp("checkpoints")
    done = run_on_cluster(_JOBS / "transcripts.py", str(shared))
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(("mode", "number"), [("streaming", 9), ("micro_batch", 4)])
def test_a_cluster_does_as_the_transcripts_say(outcomes: dict[str, Any], mode: str, number: int) -> None:
    assert outcomes[mode] == [number, []]
