"""Who may write to a checkpoint, whose content is unpickled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.error import RunnerError
from penstock_spark.checkpoints.custody.privacy import check_writers, make_private


@pytest.fixture(autouse=True)
def _umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize("scheme", ["file://", "file:", ""])
def test_a_new_checkpoint_is_its_users_alone_and_one_that_is_there_stays_as_it_is(
    tmp_path: Path, scheme: str
) -> None:
    new = tmp_path / "a" / "new"
    make_private(f"{scheme}{new}")
    assert new.stat().st_mode & 0o777 == 0o700
    new.chmod(0o750)
    make_private(f"{scheme}{new}")
    assert new.stat().st_mode & 0o777 == 0o750
    make_private("hdfs://host/new")
    check_writers("hdfs://host/new")


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (0o700, []),
        (0o755, []),
        (0o770, ["its group can write"]),
        (0o777, ["anyone can write", "its group"]),
    ],
)
def test_where_others_may_write_that_is_said(
    tmp_path: Path, mode: int, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(mode)
    check_writers(f"file://{tmp_path}")
    assert len(caplog.messages) == len(said)
    assert all(part in message for part, message in zip(said, caplog.messages, strict=True))


def test_where_somebody_else_owns_it_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    tmp_path.chmod(0o700)
    check_writers(f"file://{tmp_path}")
    assert "belongs to another user" in caplog.text


def test_what_everybody_may_have_written_is_not_unpickled(tmp_path: Path) -> None:
    (tmp_path / "plan-1.json").touch()
    tmp_path.chmod(0o777)
    with pytest.raises(RunnerError, match="anyone on this machine can write"):
        check_writers(f"file://{tmp_path}")
