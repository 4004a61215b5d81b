"""Folders from which programs are run."""

from __future__ import annotations

import pytest

from penstock_spark.process.user_cache import candidate_folders, find_kept_folder


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_is_not_used(tmp_path, monkeypatch, mode):
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    mine = find_kept_folder("java")
    assert mine == tmp_path / "java"
    mine.chmod(mode)
    assert find_kept_folder("java") is None
    assert mine not in list(candidate_folders("java"))
    mine.chmod(0o755)
    assert find_kept_folder("java") == mine
