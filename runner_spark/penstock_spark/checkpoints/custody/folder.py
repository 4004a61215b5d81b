"""The folder of a checkpoint: makes it, opens it for a pipeline that fits it, and sends commands to its query.

===============  =========================================================
``plan-7.json``  the plan of a run, named after its claim: the highest number has the latest
``spark/``       Spark's own checkpoint; ``spark-2`` and up, if it was rewritten for another plan
``control/``     commands to the query, a small file each
``inputs-1/``    the elements of bounded sources; named after the claim of the run that began it
``holders/``     which run holds it, and commands to it: `penstock_spark.checkpoints.custody.lease`
``runs/``        what each run notes of itself: `penstock_spark.checkpoints.custody.run_records`
``ended.json``   how the run ended, once all of its windows have fired
===============  =========================================================
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from penstock.error import refusal
from penstock.utils import clock
from penstock.utils.identifiers import identifier
from penstock_spark.checkpoints.contract.compare import Comparison, Signature, compare
from penstock_spark.checkpoints.custody.clock_resets import CountedSeconds, read_counted_seconds
from penstock_spark.checkpoints.custody.holder import this_holder
from penstock_spark.checkpoints.custody.lease import HOLDERS, CheckpointInUse, Lease, take_lease
from penstock_spark.checkpoints.custody.plans import (
    NOT_A_PLAN,
    KeptPlan,
    forget_plans_before,
    make_plan_file_error,
    name_of_plan,
    numbers_of_plans,
    read_latest_plans,
    write_plan,
)
from penstock_spark.checkpoints.custody.privacy import check_writers, make_private
from penstock_spark.checkpoints.custody.run_records import RUNS
from penstock_spark.checkpoints.resharding import SEEDS, Rewriting, must_rewrite, operators_of, slots_of
from penstock_spark.checkpoints.spark_logs import check_logs, last_micro_batch
from penstock_spark.checkpoints.spark_state import check_state
from penstock_spark.files.place import Place
from penstock_spark.process.written_formats import COMMAND, END
from penstock_spark.session.backends import backend_of, is_local_session

ENDED = "ended.json"
_SPARK, _CONTROL, _INPUTS = "spark", "control", "inputs"
_COMMANDS = {"drain": False, "signal": True, "end": True, "continue": False}
"""The commands, and whether each has an argument."""

_DIGITS = 20
_FIRST_COMMIT = b'v1\n{"nextBatchWatermarkMs":0}'
"""Spark's note of a finished micro-batch if it keeps no watermark of its own."""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    place: Place
    # The signature of the plan; ``dropped`` has the groupings whose state was given up, ``since`` the first
    # micro-batch of the plan, and ``id`` stays the same for the life of the checkpoint. ``folder`` is the folder of
    # Spark's checkpoint, and ``planned`` the last micro-batch that was planned when that was rewritten.
    plan: Signature
    number: int  # Of the plan.
    is_new: bool  # Whether no query has run with it.
    notes: tuple[str, ...] = ()  # What has changed, a sentence each.
    new_sinks: tuple[str, ...] = ()  # The labels of the sinks that no earlier plan has written to.
    # The claim of the run that may change it; None for readers, and for a temporary folder.
    lease: Lease | None = None
    # The number of the last micro-batch that an earlier run has begun, and perhaps not finished; -1 without one.
    last_begun: int = -1

    @property
    def spark_location(self) -> str:
        return self.spark_place.location

    @property
    def spark_place(self) -> Place:
        return self.place.inside(self.plan["folder"])

    @property
    def plan_location(self) -> str:
        return self.place.inside(name_of_plan(self.number)).location

    @property
    def control_location(self) -> str:
        return self.place.inside(_CONTROL).location

    @property
    def inputs_location(self) -> str:
        return self.place.inside(_inputs_of(self.plan)).location

    def seconds_of(self, slot: str) -> CountedSeconds:
        """The seconds that a source has counted in earlier runs; `slot` is one of `slots_of` the plan."""
        return read_counted_seconds(self.spark_place, slots_of(self.plan).index(slot))

    def last_commit(self) -> int:
        """The number of the last finished micro-batch; -1 without one."""
        return _last(self.place, self.plan["folder"], "commits")

    def is_draining(self) -> bool:
        """True if a run was asked to drain, and has not finished draining."""
        return any("-drain-" in name for name in self.place.inside(_CONTROL).names())

    def note_end(self, state: str) -> None:
        """Notes that all windows have fired, so that no later run drops new elements as late."""
        at = clock.format_utc()
        try:
            self.place.write(ENDED, json.dumps({"format": END.number, "state": state, "at": at}).encode())
        except OSError:
            # A run that hung while this one took over may still have noted its end.
            if ENDED not in self.place.names():
                raise

    def check(self) -> None:
        """Raises CheckpointInUse if this run may no longer write; called before each commit."""
        _check(self.lease)

    @property
    def claim(self) -> int:
        """The number of the run's claim, which is higher than any run's before; 0 without one."""
        return _claim(self.lease)

    @property
    def lost(self) -> CheckpointInUse | None:
        """Why the run must no longer write, if that is known; None while it may."""
        return None if self.lease is None else self.lease.lost

    def release(self) -> None:
        if self.lease is not None:
            self.lease.release()

    def command(self, name: str, argument: str | None = None) -> None:
        """Sends the query a command, which takes effect in one of the next micro-batches.

        ``drain`` ends all sources, ``end`` one of them, ``signal`` sends a signal to all groupings, and ``continue``
        only starts a micro-batch.
        """
        if bool(argument) != _COMMANDS.get(name):
            what = f"the command {name!r} with the argument {argument!r} does not exist"
            raise refusal(ValueError, what, hint="write command('drain') or command('signal', 'its name')")
        control = self.place.inside(_CONTROL)
        numbers = [int(each[:_DIGITS]) for each in control.names() if each[:_DIGITS].isdecimal()]
        # Names ascend even if the machine's clock is set back, and two programs never choose the same name.
        number = max(clock.micros(), max(numbers, default=0) + 1)
        line = json.dumps({"format": COMMAND.number, "command": name, "name": argument or None})
        control.write(f"{number:0{_DIGITS}}-{name}-{identifier()[:8]}.json", f"{line}\n".encode())


Prepare = Callable[[Checkpoint], None]
Begin = Callable[[Place, int], None]
"""Called with the folder and the number of a run's claim, as soon as the run has claimed it."""

IsWritten = Callable[[Signature, int], bool]
"""True if a micro-batch is in all sinks of a plan that do not change when it is written again."""

CheckState = Callable[[Place, int, int], None]
"""Checks that Spark's part of a checkpoint has the state of each shard of each operator, by their numbers."""

Rewrite = Callable[[Checkpoint, Signature], None]
"""Rewrites Spark's part of a checkpoint, from the folder of an old plan to the folder of the checkpoint's plan."""


def open_checkpoint(
    spark: SparkSession,
    location: str | os.PathLike[str],
    signature: Signature,
    drop_state: Collection[str] = (),
    prepare: Prepare = lambda checkpoint: None,
    run: str | None = None,
    take_over: bool = False,
    is_written: IsWritten = lambda plan, number: False,
    begin: Begin = lambda place, claim: None,
) -> Checkpoint:
    """Makes a checkpoint, or opens one for a pipeline that fits it.

    Args:
        spark: A session with the file system of the folder.
        location: The folder; without a scheme, a local path.
        signature: The pipeline's `penstock_spark.checkpoints.contract.signature.signature_of`.
        drop_state: The labels of groupings and sources whose state may be given up.
        prepare: Called with the checkpoint before the pipeline's plan is written.
        run: The name under which the run holds the checkpoint; None if no other run can know the folder.
        take_over: Whether to wait until another run that holds the checkpoint has stopped.
        is_written: Called with the latest plan and the number of a micro-batch that an earlier run has not noted as
            finished; if it is in the sinks, it counts as finished.
        begin: Called when the run has claimed the folder.

    Raises:
        ValueError: The pipeline does not fit, its run has ended, or the folder holds something else. Then nothing in it
            has changed except its holder and what `begin` does, and that a written micro-batch counts as finished.
        CheckpointInUse: Another run holds it.
        Exception: What `prepare` raises.
    """
    place = Place(spark, location)
    if is_local_session(spark):
        # On a cluster, the workers may be other users.
        make_private(place.location)
    check_writers(place.location)

    def rewrite(opened: Checkpoint, old: Signature) -> None:
        source = place.inside(old["folder"])
        target, last = opened.spark_location, _last(place, old["folder"], "commits")
        Rewriting(spark, old, opened.plan, source.location, target, last).run()

    if run is None:
        return open_at(place, signature, drop_state, prepare, None, rewrite, is_written, check_state)
    _refuse_strangers(place)
    me = this_holder(run, backend_of(spark).process())
    lease = take_lease(place, me, take_over)
    try:
        begin(place, lease.number)
        return open_at(place, signature, drop_state, prepare, lease, rewrite, is_written, check_state)
    except BaseException:
        lease.release()
        raise


def find_checkpoint(spark: SparkSession, location: str | os.PathLike[str]) -> Checkpoint:
    """An existing checkpoint, to read it or to send its query a command."""
    return find_at(Place(spark, location))


def find_at(place: Place) -> Checkpoint:
    """Like `find_checkpoint`, for any kind of folder."""
    check_writers(place.location)
    plans = read_latest_plans(place)
    if not plans:
        hint = "name the checkpoint_location of a stream that has run"
        raise _make_missing_error(place.location, place.names(), hint)
    return Checkpoint(place, plans[-1].content, plans[-1].number, is_new=False)


def check_fit(place: Place, signature: Signature, drop_state: Collection[str] = ()) -> tuple[str, ...]:
    """Returns what a changed pipeline would change for a checkpoint, a sentence each; it changes nothing.

    Raises:
        ValueError: The pipeline does not fit, or its run has ended.
    """
    if ENDED in place.names():
        raise _make_ended_error(place)
    plan = find_at(place)
    return tuple(_compare(place, KeptPlan(plan.number, plan.plan, None), signature, drop_state).notes)


def read_shard_count(spark: SparkSession, location: str | os.PathLike[str]) -> int | None:
    """The number of shards of a checkpoint that may be continued; None without one."""
    place = Place(spark, location)
    check_writers(place.location)
    plans = read_latest_plans(place)
    return plans[-1].content["shards"] if plans else None


def open_at(
    place: Place,
    signature: Signature,
    drop_state: Collection[str] = (),
    prepare: Prepare = lambda checkpoint: None,
    lease: Lease | None = None,
    rewrite: Rewrite = lambda checkpoint, old: None,
    is_written: IsWritten = lambda plan, number: False,
    check_state: CheckState = lambda spark_place, operators, shards: None,
) -> Checkpoint:
    """Like `open_checkpoint`, for any kind of folder, and with an existing claim."""
    # Reads the plans once, after the claim: until then, the previous run may change them.
    plans = read_latest_plans(place)
    if not plans:
        _refuse_strangers(place)
    if ENDED in place.names():
        raise _make_ended_error(place)
    if plans:
        old = plans[-1].content
        spark_place = place.inside(old["folder"])
        try:
            slots, operators = len(slots_of(old)), operators_of(old)
        except NOT_A_PLAN as error:
            raise make_plan_file_error(place, plans[-1].number, "it has an unexpected structure") from error
        check_logs(spark_place, slots)
        check_state(spark_place, operators, old["shards"])
    if plans and _finish_written(place, plans[0].content, is_written, lease):
        # The plan that has written it is the one in force by that.
        plans = read_latest_plans(place)
    # If this run is taken for dead, what it writes nevertheless is not the latest plan.
    number = max(numbers_of_plans(place), default=0) + 1 if lease is None else lease.number
    # If another run takes this one for dead, its folders are not among these.
    folders = _folders(place)
    if plans and _has_begun(place, plans[-1].content["folder"]):
        opened = _continue_checkpoint(place, number, plans, signature, drop_state, _claim(lease))
        # A rewritten folder gets the micro-batch that the previous one has planned and not finished.
        opened = replace(opened, lease=lease, last_begun=_last(place, plans[-1].content["folder"], "offsets"))
    else:
        # A run that was taken for dead may write to the inputs of its own claim, and to no other ones.
        own = plans[-1].content["id"] if plans else identifier()
        names = {"id": own, "folder": _SPARK, "inputs": _claim(lease)}
        plan = {**signature, **names, "dropped": [], "since": 0, "planned": None}
        if lease is None:
            place.delete(_inputs_of(plan))
        opened = Checkpoint(
            place, plan, number, is_new=True, new_sinks=tuple(signature["sinks"]), lease=lease
        )
    for note in opened.notes:
        _LOGGER.warning("the checkpoint %s: %s", place.location, note)
    prepare(opened)
    # This process may have hung so long that another run has taken it for dead.
    opened.check()
    _forget_folders(place, folders, [opened.plan, *(plan.content for plan in plans)])
    if plans and opened.plan["folder"] not in {plan.content["folder"] for plan in plans}:
        rewrite(opened, plans[-1].content)
        # That may have taken long enough for another run to take over.
        opened.check()
    is_in_force = opened.is_new or opened.plan == plans[-1].content
    kept = KeptPlan(number, opened.plan, None if is_in_force else plans[-1].number)
    write_plan(place, kept)
    # Without this, a run that was displaced while it wrote its plan would begin in a folder that is gone.
    opened.check()
    forget_plans_before(place, kept)
    for name in (opened.plan["folder"], _CONTROL, _inputs_of(opened.plan)):
        place.inside(name).make()
    return opened


def _check(lease: Lease | None) -> None:
    if lease is not None:
        lease.check()


def _claim(lease: Lease | None) -> int:
    return 0 if lease is None else lease.number


def _finish_written(place: Place, latest: Signature, is_written: IsWritten, lease: Lease | None) -> bool:
    """Notes the last micro-batch as finished if it is in the sinks, which Spark would have done next.

    Else it would run again. A table leaves out what it has already; but a changed program may come to other results,
    and then the state would not belong to what the table has. Returns whether it was noted.
    """
    folder = latest["folder"]
    begun, finished = _last(place, folder, "offsets"), _last(place, folder, "commits")
    if begun <= finished or not is_written(latest, begun):
        return False
    if latest.get("native"):
        # With Spark's own aggregate, Spark notes how far its watermark has come, and that is not known here.
        return False
    commits = place.inside(folder).inside("commits")
    content = _FIRST_COMMIT if finished < 0 else commits.read(str(finished))
    if content.split() != _FIRST_COMMIT.split():
        # A Spark setting makes it note more, such as names of files of the state. So it has to run again.
        return False
    # This process may have hung, and another run may have continued in its place.
    _check(lease)
    commits.make()
    commits.write(str(begun), content)
    _LOGGER.warning(
        "the checkpoint %s: the micro-batch %d is in the sinks, and counts as finished", place.location, begun
    )
    return True


def _refuse_strangers(place: Place) -> None:
    """Refuses a folder with other files and without a plan; reads no file."""
    names = [name for name in place.names() if not name.startswith(".") and name not in (HOLDERS, RUNS)]
    if names and not numbers_of_plans(place):
        hint = "name an empty folder, or a folder that does not exist yet"
        raise _make_missing_error(place.location, names, hint)


def read_end(place: Place) -> str:
    """Returns how and when the run of a checkpoint ended, once all of its windows have fired; empty before that."""
    if ENDED not in place.names():
        return ""
    try:
        ended = json.loads(place.read(ENDED))
        number, how = ended.get("format"), f"{ended['state']} at {ended['at']}"
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        # The file is damaged, but it is there.
        number, how = END.number, "at an unknown time"
    END.check(number, f"in {place.location}")
    return how


def _make_ended_error(place: Place) -> ValueError:
    what = f"the run of the checkpoint {place.location} has ended: {read_end(place)}"
    because = "all of its windows have fired, so a new run would drop new elements as late"
    hint = (
        "start again with another checkpoint_location, which reads all input again; "
        "to continue a stream in later runs, leave existing_only=True out of its sources, and cancel it instead of "
        "draining it"
    )
    return refusal(ValueError, f"{what}; {because}", hint=hint)


def _continue_checkpoint(
    place: Place,
    number: int,
    plans: list[KeptPlan],
    signature: Signature,
    drop_state: Collection[str],
    claim: int,
) -> Checkpoint:
    latest, old = plans[0].content, plans[-1].content
    comparison = _compare(place, plans[-1], signature, drop_state)
    dropped = sorted({*old["dropped"], *comparison.dropped})
    kept = {name: old[name] for name in ("since", "id", "folder", "inputs", "planned")}
    plan = {**signature, "dropped": dropped, **kept}
    is_rewritten = must_rewrite(old, plan)
    if not is_rewritten:
        # A micro-batch that comes again is read in the same tasks. So if a driver has hung, and its tasks also
        # continue with it, they store what is there already.
        plan["parallelism"] = old["parallelism"]
    if plan != old:
        plan["since"] = _last(place, old["folder"], "commits") + 1
    if is_rewritten:
        plan = _with_new_folder(place, plan, latest, claim)
    # A plan that failed may have written something.
    new_sinks = [label for label in signature["sinks"] if label not in old["sinks"] + latest["sinks"]]
    return Checkpoint(place, plan, number, False, tuple(comparison.notes), tuple(new_sinks))


def _compare(place: Place, old: KeptPlan, signature: Signature, drop_state: Collection[str]) -> Comparison:
    """Compares the plan of a checkpoint with the plan that should continue; ValueError if that does not fit."""
    try:
        comparison = compare(old.content, signature, drop_state)
    except NOT_A_PLAN as error:
        raise make_plan_file_error(place, old.number, "it has an unexpected structure") from error
    if comparison.refusals:
        raise _make_mismatch_error(place.location, comparison)
    return comparison


def _with_new_folder(place: Place, plan: Signature, latest: Signature, claim: int) -> Signature:
    """The plan with a folder for Spark's rewritten checkpoint; if this very plan has a whole one, that is kept."""
    planned = _last(place, plan["folder"], "offsets")
    known = {**plan, "folder": latest["folder"], "planned": planned}
    is_whole = _last(place, latest["folder"], "offsets") >= planned
    if known == latest and latest["folder"] != plan["folder"] and is_whole:
        return known
    # A task that outlives its run may still write to the folder of a run that has died, so that is not used again.
    numbers = [1, *(int(name.split("-")[1]) for name in _folders(place) if name.startswith(f"{_SPARK}-"))]
    # Nor do two runs write to one folder, of which one hung and was taken for dead.
    return {**plan, "folder": f"{_SPARK}-{max(claim, max(numbers) + 1)}", "planned": planned}


def _folders(place: Place) -> list[str]:
    """Returns the folders with checkpoints of Spark, with pieces for a rewritten one, and of bounded sources."""
    pattern = rf"{_SPARK}(-\d+({SEEDS})?)?|{_INPUTS}-\d+"
    return [name for name in place.names() if re.fullmatch(pattern, name)]


def _forget_folders(place: Place, folders: list[str], plans: list[Signature]) -> None:
    """Deletes folders that no plan refers to: rewritten ones, or half a folder of a run that has died."""
    used = {name for plan in plans for name in (plan["folder"], _inputs_of(plan))}
    for name in folders:
        if name not in used:
            place.delete(name)


def _inputs_of(plan: Signature) -> str:
    """The folder of the elements of bounded sources, of the run that began the checkpoint."""
    return f"{_INPUTS}-{plan['inputs']}"


def _has_begun(place: Place, folder: str) -> bool:
    """True if Spark may have stored anything about the sources; until then, the folder fits any pipeline."""
    spark = place.inside(folder)
    return bool(spark.inside("offsets").names() or spark.inside("sources").names())


def _last(place: Place, folder: str, log: str) -> int:
    return last_micro_batch(place.inside(folder).inside(log))


def _make_missing_error(location: str, names: list[str], hint: str) -> ValueError:
    kept = f"{', '.join(names[:3])}{' ...' if names[3:] else ''}, and no plan" if names else "nothing"
    what = f"the folder is not a penstock checkpoint: it holds {kept}"
    return refusal(ValueError, what, where=f"in {location}", hint=hint)


def _make_mismatch_error(location: str, comparison: Comparison) -> ValueError:
    lines = [line for refusal in comparison.refusals for line in refusal.splitlines()]
    what = "\n  ".join(["the pipeline does not fit the state in its checkpoint; nothing was changed", *lines])
    hint = "undo the change of the pipeline, or start again with another checkpoint_location"
    return refusal(ValueError, what, where=f"in {location}", hint=hint)
