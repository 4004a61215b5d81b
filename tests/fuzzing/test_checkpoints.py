"""The files of a checkpoint: whatever is in them, a run continues, or says which file is wrong and what to do."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock_spark.checkpoints.custody import lease
from penstock_spark.checkpoints.custody.clock_resets import read_counted_seconds
from penstock_spark.checkpoints.custody.folder import ENDED, open_at
from penstock_spark.checkpoints.custody.holder import Holder, this_holder
from penstock_spark.checkpoints.custody.lease import Timing, take_lease
from penstock_spark.checkpoints.custody.plans import name_of_plan
from penstock_spark.checkpoints.resharding import HEARTBEAT_SLOT, slots_of
from penstock_spark.checkpoints.spark_state import check_state
from penstock_spark.files.temporary import is_abandoned, make_name
from penstock_spark.process.identity import Process, this_process
from tests.fuzzing.chance import Chance
from tests.fuzzing.refused import each_seed, is_refusal, refusal_of, result_or_refusal, seeds
from tests.runner.checkpoint_plans import BASE, lines
from tests.runner.disk_place import COMMIT, DiskPlace, note_micro_batch


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
    note_micro_batch(place, 0)
    name = name_of_plan(1)
    written = place.read(name)

    def law(chance: Chance) -> None:
        content = wrong_content(chance, written)
        for other in place.path.glob("plan-*.json"):
            other.unlink()
        (place.path / name).write_bytes(content)
        if result_or_refusal(lambda: open_at(place, signature)) is None:
            # Nothing has changed.
            assert place.read(name) == content

    each_seed(count, law)


def list_of_files(*numbers: int) -> bytes:
    """Returns what Spark notes of the files that it found in some looks, one in each."""
    files = [f'{{"path":"file:///logs/{each}.txt","timestamp":1,"batchId":{each}}}' for each in numbers]
    return "\n".join(["v1", *files]).encode()


def sparks_files(sources: int) -> dict[str, bytes]:
    """What Spark has noted when a query dies in its second micro-batch; its first source counts seconds."""
    others = [b'{"logOffset":0}', b'{"logOffset":11}', b'{"a": "b"}'][: sources - 1]
    about = b'v1\n{"batchWatermarkMs":0,"conf":{"spark.sql.shuffle.partitions":"2"}}'
    return {
        "metadata": b'{"id":"9a5339f2-7fa9-4d4b-90ef-7df811c057ac"}',
        "offsets/0": b"\n".join([about, b"-", *others]),
        "offsets/1": b"\n".join([about, b"16", *others]),
        "commits/0": COMMIT,
        "sources/0/0": b"v1\n1795880191871",
        "sources/1/0": list_of_files(0),
        "sources/2/9.compact": list_of_files(*range(10)),
        "sources/2/10": list_of_files(10),
        "sources/2/11": list_of_files(11),
    }


def lost_end(chance: Chance, content: bytes) -> bytes:
    """What a machine leaves of a file that loses its power while it is written: nothing, zeros, or a beginning."""
    return chance.one_of([b"", bytes(len(content)), content[: chance.randrange(len(content))]])


@seeds(150, 50_000)
def test_a_damaged_file_of_sparks_is_named_before_spark_reads_it(tmp_path: Path, count: int) -> None:
    place = DiskPlace(tmp_path / "checkpoint")
    signature = replace(BASE, source=lines()).signature()
    plan = open_at(place, signature).plan
    files = sparks_files(len(slots_of(plan)))
    assert slots_of(plan)[0] == HEARTBEAT_SLOT

    def law(chance: Chance) -> None:
        name = chance.one_of(sorted(files))
        is_cut = chance.often()
        content = lost_end(chance, files[name]) if is_cut else chance.damaged(files[name])
        for each, written in {**files, name: content}.items():
            (place.path / "spark" / each).parent.mkdir(parents=True, exist_ok=True)
            (place.path / "spark" / each).write_bytes(written)
        error = refusal_of(lambda: read_counted_seconds(open_at(place, signature).spark_place, 0))
        if error is None:
            # A number without its last digits is a number, and a list without its last files is a list.
            is_number = name == "sources/0/0" and content[3:].isdigit()
            assert not is_cut or is_number or files[name].startswith(content + b"\n")
        elif f"Spark's file {name} " not in str(error):
            # It counts more lists than there are.
            assert name.startswith("offsets/")
            assert re.search(r"Spark's file sources/\d+/\d+ cannot be read \(it is missing\)", str(error))
        else:
            assert (place.path / "spark" / name).read_bytes() == content

    each_seed(count, law)


@seeds(100, 20_000)
def test_a_missing_list_of_files_is_named_if_spark_reads_it(tmp_path: Path, count: int) -> None:
    """Spark reads the latest list of all files and the lists behind it, and deletes those before it."""
    place = DiskPlace(tmp_path / "checkpoint")
    signature = replace(BASE, source=lines()).signature()
    files = sparks_files(len(slots_of(open_at(place, signature).plan)))

    def law(chance: Chance) -> None:
        end, first = chance.randrange(40), chance.randrange(10)
        compact = end - (end + 1) % 10
        lists = {
            number: f"{number}.compact" if number % 10 == 9 else f"{number}" for number in range(end + 1)
        }
        kept = [name for number, name in lists.items() if number >= min(first, max(compact, 0))]
        needed = [name for number, name in lists.items() if number >= compact]
        lost = chance.one_of([None, *kept])
        shutil.rmtree(place.path / "spark", ignore_errors=True)
        told = {
            name: content.replace(b'"logOffset":11', b'"logOffset":%d' % end)
            for name, content in files.items()
        }
        lists_on_disk = {f"sources/2/{name}": list_of_files(1) for name in kept if name != lost}
        for each, written in {**told, **lists_on_disk}.items():
            if each.startswith("sources/2/") and each not in lists_on_disk:
                continue
            (place.path / "spark" / each).parent.mkdir(parents=True, exist_ok=True)
            (place.path / "spark" / each).write_bytes(written)
        error = refusal_of(lambda: open_at(place, signature))
        if lost in needed:
            assert f"Spark's file sources/2/{str(lost).removesuffix('.compact')} " in str(error)
        else:
            assert error is None

    each_seed(count, law)


@seeds(60, 5_000)
def test_a_shard_without_its_latest_state_is_named(tmp_path: Path, count: int) -> None:
    place = DiskPlace(tmp_path / "checkpoint")
    signature = BASE.signature()
    open_at(place, signature)
    note_micro_batch(place, 0)
    note_micro_batch(place, 7)
    # A snapshot, what a run without snapshots writes, and that in Spark's second format.
    written = ["8.zip", "8.changelog", "8_1f0c.changelog"]
    operators, shards = len(signature["levels"]), signature["shards"]

    def law(chance: Chance) -> None:
        folders = [f"state/{operator}/{shard}" for operator in range(operators) for shard in range(shards)]
        for folder in folders:
            shutil.rmtree(place.path / "spark" / folder, ignore_errors=True)
            (place.path / "spark" / folder).mkdir(parents=True)
            for name in ["3.zip", "7.changelog", chance.one_of(written), "80.changelog"]:
                (place.path / "spark" / folder / name).touch()
        check = partial(open_at, place, signature, check_state=check_state)
        check()
        damaged = chance.one_of(folders)
        if chance.often():
            shutil.rmtree(place.path / "spark" / damaged)
        else:
            for name in (place.path / "spark" / damaged).glob("8[._]*"):
                name.unlink()
        assert f"Spark's file {damaged}/8.changelog cannot be read (it is missing)" in str(refusal_of(check))

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
    name = make_name()
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
