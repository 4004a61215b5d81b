"""Programs travel to workers on other machines with the user's modules."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from penstock_spark.worker import programs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOADS = "import pickle, sys; print(pickle.load(sys.stdin.buffer)(3))"


@pytest.mark.parametrize("is_local", [False, True])
def test_a_program_of_a_users_module_runs_where_the_module_is_not(
    is_local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sink_of_mine.py").write_text("def write(factor, rows):\n    return factor * rows\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("sink_of_mine")
    monkeypatch.setattr(programs, "is_local_session", lambda spark: is_local)
    pickled = programs.dumps_for_workers(partial(module.write, 2), cast("SparkSession", None))
    assert pickle.loads(pickled)(3) == 6
    done = subprocess.run([sys.executable, "-c", _LOADS], input=pickled, capture_output=True, check=False)
    assert (done.stdout == b"6\n") is not is_local
