"""The files of a checkpoint: whatever is in them, a run continues, or says which file is wrong and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chance import Chance
from checkpoint_plans import BASE
from disk_place import DiskPlace
from refused import each_seed, is_refusal, result_or_refusal, seeds

from penstock_spark.checkpoints import lease
from penstock_spark.checkpoints.folder import ENDED, PLAN, open_at
from penstock_spark.checkpoints.holder import Holder, this_holder
from penstock_spark.checkpoints.lease import Timing, take_lease
from penstock_spark.files.temporary import is_abandoned, new_name
from penstock_spark.process.identity import Process, this_process


def wrong_content(chance: Chance, content: bytes) -> bytes:
    """A JSON file with another value somewhere in it, or with other bytes."""
    if chance.often(0.2):
        return chance.damaged(content)
    return json.dumps(chance.damaged_json(json.loads(content))).encode()


@pytest.fixture(scope="module")
def signature() -> dict[str, Any]:
    return BASE.signature()


@seeds(300, 20_000)
def test_a_damaged_plan_is_refused_or_fits(tmp_path: Path, signature: dict[str, Any], count: int) -> None:
    place = DiskPlace(tmp_path / "checkpoint")
    open_at(place, signature)
    for name in ("offsets", "commits"):
        (place.path / "spark" / name).mkdir(parents=True)
        (place.path / "spark" / name / "0").touch()
    written = place.read(PLAN)

    def law(chance: Chance) -> None:
        content = wrong_content(chance, written)
        (place.path / PLAN).write_bytes(content)
        for earlier in place.path.glob(f"{PLAN}.*"):
            earlier.unlink()
        if result_or_refusal(lambda: open_at(place, signature)) is None:
            # Nothing has changed.
            assert place.read(PLAN) == content

    each_seed(count, law)


@seeds(200, 20_000)
def test_a_damaged_note_of_the_end_is_an_end(tmp_path: Path, signature: dict[str, Any], count: int) -> None:
    place = DiskPlace(tmp_path / "checkpoint")
    open_at(place, signature).note_end("DONE")
    written = place.read(ENDED)

    def law(chance: Chance) -> None:
        (place.path / ENDED).write_bytes(wrong_content(chance, written))
        with pytest.raises(ValueError, match="has ended") as caught:
            open_at(place, signature)
        assert is_refusal(caught.value)

    each_seed(count, law)


@seeds(150, 20_000)
def test_a_damaged_claim_holds_as_long_as_it_beats(tmp_path: Path, count: int) -> None:
    """A claim that cannot be read is the claim of a run that may be alive: another run waits for its heartbeat."""
    place = DiskPlace(tmp_path / "checkpoint")
    me = this_holder("mine")
    written = json.dumps(me.as_json()).encode()
    holders = place.inside(lease.HOLDERS)
    holders.make()
    timing = Timing(beat_seconds=0.001, silence_seconds=0.001)

    def law(chance: Chance) -> None:
        for each in holders.path.iterdir():
            each.unlink()
        (holders.path / "000001.json").write_bytes(wrong_content(chance, written))
        taken = result_or_refusal(lambda: take_lease(place, me, take_over=False, timing=timing))
        if taken is not None:
            taken[0].release()

    each_seed(count, law)


@seeds(300, 50_000)
def test_a_damaged_holder_is_none_or_can_be_shown_and_asked(count: int) -> None:
    def law(chance: Chance) -> None:
        data = chance.damaged_json(this_holder("mine").as_json())
        try:
            holder = Holder.from_json(data)
        except (ValueError, TypeError, KeyError):
            return
        assert holder.processes
        assert str(holder)
        holder.is_dead()

    each_seed(count, law)


@seeds(300, 50_000)
def test_a_damaged_mark_of_a_folder_of_unfinished_files_names_no_process_or_one_that_can_be_asked(
    count: int,
) -> None:
    mark = this_process().to_json()
    name = new_name()
    assert not is_abandoned(name, mark, 1e9)

    def law(chance: Chance) -> None:
        wrong = wrong_content(chance, mark)
        process = Process.from_json(wrong)
        assert process is None or process.has_ended() in (None, True, False)
        if process is None:
            # Nobody knows whose it is: time decides.
            assert is_abandoned(name, wrong, 1e9)
            assert not is_abandoned(name, wrong, 1)

    each_seed(count, law)
