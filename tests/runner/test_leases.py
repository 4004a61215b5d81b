"""One run at a time holds a checkpoint, whatever happens to the others."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from penstock_spark.checkpoints.custody.holder import Holder, this_holder
from penstock_spark.checkpoints.custody.lease import HOLDERS, CheckpointInUse, Lease, Timing, take_lease
from tests.runner.disk_place import DiskPlace

QUICK = Timing(beat_seconds=0.02, silence_seconds=0.5)


def elsewhere(run: str) -> Holder:
    """A run on another machine, whose processes cannot be seen from here."""
    holder = this_holder(run)
    return replace(holder, processes=tuple(replace(each, machine="far-away 1") for each in holder.processes))


def left_behind(place: DiskPlace, holder: Holder) -> None:
    """A claim of a run that was killed: it gives no signs of life any more."""
    holders = place.inside(HOLDERS)
    lease = take_lease(place, holder, timing=QUICK)
    lease.release()
    holders.delete(holders.names()[-1])
    assert [name.partition(".")[2] for name in holders.names()] == ["json"]


def test_a_second_run_is_refused_and_told_who_holds_the_checkpoint(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    lease = take_lease(place, this_holder("first"), timing=QUICK)
    with pytest.raises(CheckpointInUse) as caught:
        take_lease(place, this_holder("second"), timing=QUICK)
    assert str(tmp_path) in str(caught.value)
    assert f"the run first (process {os.getpid()} on " in str(caught.value)
    assert "--take_over" in str(caught.value)
    lease.check()
    lease.release()
    take_lease(place, this_holder("second"), timing=QUICK).release()


def test_of_many_runs_that_begin_at_once_one_holds_the_checkpoint(tmp_path: Path) -> None:
    place, start = DiskPlace(tmp_path), threading.Barrier(8)

    def attempt(number: int) -> Lease | None:
        start.wait()
        try:
            return take_lease(place, this_holder(f"run {number}"), timing=QUICK)
        except CheckpointInUse:
            return None

    with ThreadPoolExecutor(8) as pool:
        leases = [lease for lease in pool.map(attempt, range(8)) if lease is not None]
    assert len(leases) == 1
    leases[0].check()
    leases[0].release()


def test_a_run_whose_processes_are_gone_is_replaced_at_once(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        killed = this_holder("killed", process.pid)
        killed = replace(killed, processes=killed.processes[1:])
        assert not killed.is_dead()
        process.kill()
    assert killed.is_dead()
    left_behind(place, killed)
    never = Timing(beat_seconds=0.02, silence_seconds=3600)
    take_lease(place, this_holder("next"), timing=never).release()


def test_a_process_that_got_the_number_of_another_is_not_taken_for_it() -> None:
    [process] = this_holder("run").processes
    assert replace(this_holder("run"), processes=(replace(process, started="12"),)).is_dead()


def test_a_run_elsewhere_is_dead_if_it_gives_no_sign_of_life_while_somebody_watches(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    left_behind(place, elsewhere("silent"))
    lease = take_lease(place, elsewhere("alive"), timing=QUICK)
    with pytest.raises(CheckpointInUse, match=r"the run alive .* on far-away"):
        take_lease(place, this_holder("third"), timing=QUICK)
    lease.release()


def test_a_run_that_takes_over_from_one_that_has_ended_does_not_say_that_it_waits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = DiskPlace(tmp_path)
    take_lease(place, this_holder("first"), timing=QUICK).release()
    take_lease(place, this_holder("second"), take_over=True, timing=QUICK).release()
    assert caplog.messages == []


def test_a_run_that_takes_over_begins_when_the_other_has_stopped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = DiskPlace(tmp_path)
    first = take_lease(place, this_holder("first"), timing=QUICK)
    taken: list[Lease] = []
    taker = threading.Thread(
        target=lambda: taken.append(take_lease(place, this_holder("second"), take_over=True, timing=QUICK))
    )
    taker.start()
    while first.lost is None:
        threading.Event().wait(0.01)
    for _ in range(2):
        with pytest.raises(
            CheckpointInUse, match=r"this run was displaced: .* is now held by the run second"
        ) as caught:
            first.check()
        # Of this call alone: each thread of the run that raises it would add its stack to a shared error.
        assert [each.name for each in caught.traceback][1:] == ["check"]
    # Its query may take longer to stop than the time after which a silent run is dead.
    taker.join(2 * QUICK.silence_seconds)
    assert not taken
    assert "waiting until the run that holds it has stopped" in caplog.text
    first.release()
    taker.join()
    taken[0].check()
    # A sign of life that is being written is hidden.
    seen = [name for name in place.inside(HOLDERS).names() if not name.startswith(".")]
    assert {name.partition(".")[0] for name in seen} == {"000002"}
    taken[0].release()


def test_a_claim_that_was_cut_short_while_it_was_written_is_one_of_a_run_without_a_name(
    tmp_path: Path,
) -> None:
    place = DiskPlace(tmp_path)
    place.inside(HOLDERS).make()
    assert place.inside(HOLDERS).claim("000001.json", b'{"run"')
    take_lease(place, this_holder("next"), timing=QUICK).release()


def test_a_run_finds_that_the_folder_of_its_checkpoint_is_gone(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path / "checkpoint")
    lease = take_lease(place, this_holder("first"), timing=Timing(beat_seconds=3600))
    place.inside(HOLDERS).delete("000001.json")
    with pytest.raises(CheckpointInUse, match="was deleted"):
        lease.check()
    lease.release()


def test_a_claim_is_higher_than_all_plans_if_the_claims_are_deleted(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    (tmp_path / "plan-7.json").touch()
    lease = take_lease(place, this_holder("first"), timing=QUICK)
    lease.release()
    assert lease.number == 8


def test_a_run_that_has_claimed_and_planned_while_another_one_watched_is_not_displaced(
    tmp_path: Path,
) -> None:
    place = DiskPlace(tmp_path)
    left_behind(place, elsewhere("dead"))
    looks: list[str] = []
    faster: list[Lease] = []

    class Watched(DiskPlace):
        def inside(self, name: str) -> DiskPlace:
            return Watched(self.path / name)

        def names(self) -> list[str]:
            looks.append(self.path.name)
            if looks[-3:] == [HOLDERS, HOLDERS, HOLDERS] and not faster:
                faster.append(take_lease(place, this_holder("faster"), timing=QUICK))
                (tmp_path / "plan-2.json").touch()
            return super().names()

    with pytest.raises(CheckpointInUse, match="held by the run faster"):
        take_lease(Watched(tmp_path), this_holder("slower"), timing=QUICK)
    faster[0].check()
    faster[0].release()
