"""The folder of a checkpoint, wherever opening it is cut short."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from penstock.transforms.trigger import AfterCount
from penstock.utils import clock
from penstock_spark.checkpoints.custody import folder
from penstock_spark.checkpoints.custody.folder import Checkpoint, open_at
from penstock_spark.checkpoints.custody.lease import CheckpointInUse
from tests.runner.checkpoint_plans import BASE, grouped, windowed, written
from tests.runner.disk_place import COMMIT, DiskPlace, note_micro_batch


def contents(path: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in path.rglob("*") if each.is_file()}


CHANGED = replace(BASE, step_label="Renamed", more=grouped("More"))
MISFIT = replace(BASE, mode="micro_batch")


def finish(place: DiskPlace, *batches: int) -> None:
    """Notes that micro-batches were planned and finished."""
    for batch in batches:
        note_micro_batch(place, batch)


def plan_names(place: DiskPlace) -> list[str]:
    return [name for name in place.names() if name.startswith("plan")]


def test_a_new_folder_gets_a_plan_and_is_found_again(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path / "a" / "b")
    made = open_at(place, BASE.signature())
    assert made.is_new
    assert made.notes == ()
    assert place.names() == ["control", "inputs-0", "plan-1.json", "spark"]
    locations = [made.spark_location, made.control_location, made.inputs_location]
    assert [Path(location).name for location in locations] == ["spark", "control", "inputs-0"]
    finish(place, 0)
    again = open_at(place, BASE.signature())
    assert (again.is_new, again.plan, plan_names(place)) == (False, made.plan, ["plan-2.json"])


def test_before_anything_has_run_anything_fits(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    open_at(place, BASE.signature())
    (tmp_path / "inputs-0" / "Names").mkdir()
    again = open_at(place, replace(BASE, shards=9, more=written("Out")).signature(), ["Sum"])
    assert (again.is_new, again.notes, again.new_sinks) == (True, (), ("Out",))
    assert place.inside("inputs-0").names() == []
    # A source may be noted before the first micro-batch is.
    (tmp_path / "spark" / "sources" / "0").mkdir(parents=True)
    with pytest.raises(ValueError, match="does not fit"):
        open_at(place, MISFIT.signature())


def test_an_accepted_change_is_put_in_force_and_until_then_the_plan_before_is_kept(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    before = open_at(place, BASE.signature()).plan
    finish(place, 0, 1, 10, 9)
    changed = open_at(place, replace(BASE, more=written("Out")).signature())
    assert (changed.is_new, changed.new_sinks) == (False, ("Out",))
    assert changed.notes == ("'Out' receives only elements that arrive from now on",)
    assert changed.plan["since"] == 11
    assert [json.loads(place.read(name)) for name in plan_names(place)] == [
        {**before, "before": None},
        {**changed.plan, "before": 1},
    ]
    finish(place, 11)
    assert open_at(place, BASE.signature()).plan == {**before, "since": 12}
    assert plan_names(place) == ["plan-2.json", "plan-3.json"]


def test_an_update_that_has_finished_nothing_can_be_taken_back_or_tried_again(tmp_path: Path) -> None:
    place, update = DiskPlace(tmp_path), replace(CHANGED, more=grouped("More"))
    before = open_at(place, replace(BASE, more=written("Out")).signature()).plan
    finish(place, 0)
    first, second = (open_at(place, update.signature()) for _ in range(2))
    assert first.plan == second.plan
    assert plan_names(place) == ["plan-1.json", "plan-3.json"]
    # Its grouping has no state, and nothing is lost of what it has left out.
    assert open_at(place, replace(BASE, more=written("Out")).signature()).plan == before
    added = replace(CHANGED, more=written("More"))
    assert [open_at(place, added.signature()).new_sinks for _ in range(2)] == [("More",), ()]
    finish(place, 1)
    assert open_at(place, added.signature()).plan["since"] == 1


def test_a_refusal_is_a_readable_difference_and_changes_nothing(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    open_at(place, windowed().signature())
    finish(place, 0)
    before = contents(tmp_path)
    new = replace(windowed(trigger=AfterCount(4)), mode="micro_batch")
    with pytest.raises(ValueError, match="does not fit") as raised:
        open_at(place, new.signature())
    assert str(raised.value).splitlines() == [
        "the pipeline does not fit the state in its checkpoint; nothing was changed",
        "  the pipeline has a different mode",
        "    - streaming",
        "    + micro_batch",
        "  'Sum' has another trigger",
        "    - Repeatedly(underlying=AfterCount(count=3))",
        "    + Repeatedly(underlying=AfterCount(count=4))",
        f"  in {tmp_path}",
        "  hint: undo the change of the pipeline, or start again with another checkpoint_location",
    ]
    assert contents(tmp_path) == before


@pytest.mark.parametrize("names", [["a.csv"], ["_delta_log"], ["spark", "control"], ["plan-1.json.old"]])
def test_a_folder_of_something_else_is_refused(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).mkdir()
    with pytest.raises(ValueError, match=rf"not a penstock checkpoint: it holds {sorted(names)[0]}"):
        open_at(DiskPlace(tmp_path), BASE.signature())
    assert DiskPlace(tmp_path).names() == sorted(names)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "1"}', '{"format": 1}', "\u00e9"])
def test_a_plan_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "plan-1.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(ValueError, match=r"plan-1\.json is not the plan of a checkpoint"):
        open_at(DiskPlace(tmp_path), BASE.signature())


def test_a_plan_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan-1.json").write_text('{"format": 2, "penstock": "9.0"}')
    with pytest.raises(ValueError, match=r"penstock 9\.0 wrote the plan of a checkpoint, in the format 2"):
        open_at(DiskPlace(tmp_path), BASE.signature())


def cut_short(
    folder: Path, change: Callable[[DiskPlace], Any], before: Callable[[DiskPlace], Any] = lambda place: None
) -> Iterator[DiskPlace]:
    """The places in which a change was cut short, at each of its steps in turn."""
    for cuts in itertools.count():
        place = DiskPlace(folder / str(cuts))
        before(place)
        try:
            change(DiskPlace(place.path, [cuts]))
        except InterruptedError:
            yield place
        else:
            return


def test_wherever_opening_is_cut_short_it_can_be_done_again(tmp_path: Path) -> None:
    cuts = 0
    for place in cut_short(tmp_path, lambda place: open_at(place, BASE.signature())):
        assert open_at(place, BASE.signature()).plan["steps"] == BASE.signature()["steps"]
        cuts += 1
    assert cuts > 3


def test_wherever_a_change_is_cut_short_there_is_a_plan(tmp_path: Path) -> None:
    old, new = BASE.signature(), CHANGED.signature()

    def begun(place: DiskPlace) -> None:
        open_at(place, old)
        finish(place, 0)

    cuts = 0
    for place in cut_short(tmp_path, lambda place: open_at(place, new), begun):
        # Whoever comes next is compared with the plan that has run, and not taken for the first.
        with pytest.raises(ValueError, match="does not fit"):
            open_at(place, MISFIT.signature())
        assert not open_at(place, new).is_new
        own = {"dropped": [], "since": 1, "id": ANY, "folder": "spark", "inputs": 0, "planned": None}
        assert open_at(place, new).plan == {**new, **own}
        cuts += 1
    assert cuts > 4


def begin(place: DiskPlace, batch: int, before: bytes = COMMIT) -> None:
    """Leaves what a driver leaves that dies in a micro-batch: it was planned, and the one before it was finished."""
    finish(place, *range(batch))
    if batch:
        (place.path / "spark" / "commits" / str(batch - 1)).write_bytes(before)
    note_micro_batch(place, batch, "offsets")


def commits(place: DiskPlace) -> list[str]:
    return place.inside("spark").inside("commits").names()


@pytest.mark.parametrize("batch", [0, 1, 12])
def test_a_micro_batch_that_is_in_the_sinks_counts_as_finished(tmp_path: Path, batch: int) -> None:
    place = DiskPlace(tmp_path)
    before = open_at(place, BASE.signature()).plan
    begin(place, batch)
    asked: list[Any] = []
    changed = open_at(place, CHANGED.signature(), is_written=lambda *args: asked.append(args) or True)
    assert asked == [(before, batch)]
    assert place.inside("spark").inside("commits").read(str(batch)) == COMMIT
    assert (changed.last_begun, changed.last_commit(), changed.plan["since"]) == (batch, batch, batch + 1)
    # There is nothing to ask about any more.
    open_at(place, CHANGED.signature(), is_written=lambda plan, number: pytest.fail("asked again"))


def test_the_plan_that_has_written_a_micro_batch_is_in_force_then(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    open_at(place, BASE.signature())
    finish(place, 0)
    update = open_at(place, replace(BASE, more=grouped("More")).signature()).plan
    begin(place, 1)
    # The update has state now, which the plan before lacks: it cannot be undone.
    with pytest.raises(ValueError, match="'More'"):
        open_at(place, BASE.signature(), is_written=lambda plan, number: plan == update)


@pytest.mark.parametrize("why", ["not written", "everything is finished", "Spark notes more"])
def test_other_micro_batches_run_again(tmp_path: Path, why: str) -> None:
    place = DiskPlace(tmp_path)
    open_at(place, BASE.signature())
    if why == "everything is finished":
        finish(place, 0)
    else:
        begin(place, 1, b'v2\n{"stateUniqueIds":{}}' if why == "Spark notes more" else COMMIT)
    before = commits(place)
    open_at(place, BASE.signature(), is_written=lambda plan, number: why != "not written")
    assert commits(place) == before


def test_a_table_that_cannot_be_asked_leaves_everything_as_it_was(tmp_path: Path) -> None:
    def is_away(plan: Any, number: int) -> bool:
        raise ConnectionError("the database is away")

    place = DiskPlace(tmp_path)
    open_at(place, BASE.signature())
    begin(place, 1)
    before = contents(tmp_path)
    with pytest.raises(ConnectionError):
        open_at(place, CHANGED.signature(), is_written=is_away)
    assert contents(tmp_path) == before


def test_a_run_that_stood_still_while_it_asked_notes_nothing(tmp_path: Path) -> None:
    class LostLease:
        number = 1

        def check(self) -> None:
            raise CheckpointInUse("another run has it")

    place = DiskPlace(tmp_path)
    open_at(place, BASE.signature())
    begin(place, 1)
    with pytest.raises(CheckpointInUse):
        open_at(place, BASE.signature(), lease=LostLease(), is_written=lambda plan, number: True)
    assert commits(place) == ["0"]


@dataclass
class SlowLease:
    """A look at the claims, behind which this run stands still, and another one makes a folder."""

    folder: Path
    number: int = 5

    def check(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)


def test_a_run_that_stood_still_leaves_the_state_of_the_run_in_its_place(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    open_at(place, BASE.signature())
    finish(place, 0)
    (tmp_path / "spark-3").mkdir()
    lease = SlowLease(tmp_path / "spark-7" / "commits")
    opened = open_at(place, replace(BASE, shards=BASE.shards + 1).signature(), lease=lease)
    # No run before it had that number.
    assert opened.plan["folder"] == "spark-5"
    assert [name for name in place.names() if name.startswith("spark")] == ["spark", "spark-5", "spark-7"]


def test_a_run_that_stood_still_leaves_the_inputs_of_the_run_in_its_place(tmp_path: Path) -> None:
    place = DiskPlace(tmp_path)
    open_at(place, BASE.signature())
    (tmp_path / "inputs-3" / "Names").mkdir(parents=True)
    opened = open_at(place, BASE.signature(), lease=SlowLease(tmp_path / "inputs-7" / "Names"))
    assert (opened.is_new, opened.plan["inputs"]) == (True, 5)
    # Those of the plan before may still be needed if the new plan cannot be written.
    assert [name for name in place.names() if name.startswith("inputs")] == [
        "inputs-0",
        "inputs-5",
        "inputs-7",
    ]
    assert place.inside("inputs-7").names() == ["Names"]


def test_wherever_a_micro_batch_is_noted_too_late_it_can_be_done_again(tmp_path: Path) -> None:
    def begun(place: DiskPlace) -> None:
        open_at(place, BASE.signature())
        begin(place, 3)

    def change(place: DiskPlace) -> Checkpoint:
        return open_at(place, CHANGED.signature(), is_written=lambda plan, number: True)

    cuts = 0
    for place in cut_short(tmp_path, change, begun):
        last = change(place)
        assert (last.last_commit(), last.plan["since"]) == (3, 4)
        cuts += 1
    assert cuts > 4


def test_state_that_was_given_up_stays_so(tmp_path: Path) -> None:
    place, old = DiskPlace(tmp_path), replace(BASE, more=grouped("More")).signature()
    open_at(place, old)
    finish(place, 0)
    assert open_at(place, BASE.signature(), ["More"]).plan["dropped"] == ["More"]
    # Until something has run without it, it is not.
    assert open_at(place, old).plan["dropped"] == []
    assert open_at(place, BASE.signature(), ["More"]).notes == ("the state of 'More' is discarded",)
    finish(place, 1)
    # The option may stay in the program, and the same pipeline needs it no more.
    assert open_at(place, BASE.signature(), ["More"]).notes == ()
    assert open_at(place, BASE.signature()).plan["dropped"] == ["More"]
    with pytest.raises(ValueError, match="the state of an earlier 'More' was discarded"):
        open_at(place, old)


def commands(place: DiskPlace) -> list[dict[str, Any]]:
    control = place.inside("control")
    return [json.loads(control.read(name)) for name in control.names()]


def test_commands_are_files_in_order_of_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = DiskPlace(tmp_path)
    checkpoint: Checkpoint = open_at(place, BASE.signature())
    (tmp_path / "control" / "readme.txt").write_text("{}")
    (tmp_path / "control" / "readme.txt").unlink()
    times = iter([5, 4, 4])
    monkeypatch.setattr(clock, "micros", lambda: next(times))
    checkpoint.command("signal", "the auditors\nare here")
    checkpoint.command("end", "Clicks")
    checkpoint.command("drain", "")
    assert commands(place) == [
        {"format": 1, "command": "signal", "name": "the auditors\nare here"},
        {"format": 1, "command": "end", "name": "Clicks"},
        {"format": 1, "command": "drain", "name": None},
    ]
    texts = [place.inside("control").read(name) for name in place.inside("control").names()]
    assert [text.count(b"\n") for text in texts] == [1, 1, 1]


@pytest.mark.parametrize(
    ("name", "argument"), [("stop", None), ("signal", None), ("signal", ""), ("drain", "x")]
)
def test_there_are_no_other_commands(tmp_path: Path, name: str, argument: str | None) -> None:
    place = DiskPlace(tmp_path)
    with pytest.raises(ValueError, match=r"the command .* does not exist"):
        open_at(place, BASE.signature()).command(name, argument)
    assert commands(place) == []


def test_plans_are_read_once_and_strangers_are_told_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    monkeypatch.setattr(
        DiskPlace, "read", lambda self, name: read.append(name) or (self.path / name).read_bytes()
    )
    place = DiskPlace(tmp_path)
    open_at(place, BASE.signature())
    finish(place, 0)
    for number, signature in enumerate((BASE.signature(), replace(BASE, more=written("Out")).signature()), 1):
        read.clear()
        folder._refuse_strangers(place)
        assert read == []
        open_at(place, signature)
        # And the last file in each log of Spark.
        assert read == [f"plan-{number}.json", "0", "0"]
    stranger = DiskPlace(tmp_path / "photos")
    stranger.write("may.jpg", b"")
    with pytest.raises(ValueError, match=r"the folder is not a penstock checkpoint: it holds may\.jpg"):
        folder._refuse_strangers(stranger)
