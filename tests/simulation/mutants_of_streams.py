"""Deliberate breaks of the runtime above Spark: each takes out a fix, or changes the order of what is committed."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from penstock.io.custom.ranges import NumberedSource
from penstock.relations import joins, validity
from penstock_connectors.database import errors, postgres
from penstock_connectors.database.postgres import PostgresWriter
from penstock_spark.checkpoints import resharding
from penstock_spark.checkpoints.custody import clock_resets, folder, lease, plans
from penstock_spark.files.place import Place
from penstock_spark.formats.ranges import reading
from penstock_spark.formats.ranges.positions import Positions
from penstock_spark.formats.ranges.stream import Planner
from penstock_spark.lowering import batch_writer
from penstock_spark.lowering.batch_writer import BatchWriter
from penstock_spark.reports import metrics
from penstock_spark.runs import running
from penstock_spark.runs.draining import Backlog
from penstock_spark.runs.running import StreamRun
from penstock_spark.sinks.files import _Writing
from penstock_spark.sinks.plan import MicroBatch
from penstock_spark.stream import tasks
from penstock_spark.stream.resharding import merged_headers, moved_pages
from penstock_spark.stream.shards import shard, window_table
from penstock_spark.stream.shards.keys import KeyTable
from penstock_spark.stream.shards.waiting import WaitingOperator
from penstock_spark.stream.state import segments
from tests.simulation.mutant import Mutant
from tests.simulation.mutants_of_native_streams import OF_NATIVE_STREAMS
from tests.simulation.stream_programs import Arriving, Life, Program, Shape, random_program

FILES = tuple(
    Arriving(seconds, f"{number:02d}.txt", lines)
    for number, (seconds, lines) in enumerate(
        [(0.0, ("a,1,1,0", "b,2,14,1")), (0.0, ("a,3,22,2",)), (1.0, ("c,4,31,3",)), (1.0, ("b,5,45,4",))]
    )
)
AT_ONCE = tuple(replace(file, seconds=0.0) for file in FILES)
END = Life()


def by_machines(seed: int) -> Program:
    """A program at random whose groupings are ours."""
    return random_program(seed, native=0.0)


def a_full_disk(seed: int) -> Program:
    shape = Shape(grouping="none", files_per_batch=1)
    return Program((shape,), AT_ONCE, (Life("full disk", 18.0 + seed % 40), END))


def a_full_disk_after_the_end(seed: int) -> Program:
    """Files come while a finite stream ends, and the disk is full when they are written."""
    random = Random(seed)
    shape = Shape(lines_too=True, interval=0.1)
    late = tuple(replace(file, seconds=1.5 * random.random()) for file in FILES[2:])
    return Program((shape,), (*AT_ONCE[:2], *late), (Life("full disk", float(random.randrange(70, 80))), END))


def a_second_driver_elsewhere(seed: int) -> Program:
    lives = (Life("crash", 9999.0, rival="polite", rival_at=0.5, rival_machine="second"), END)
    return Program((Shape(ends=False),), FILES, lives)


def two_sinks(seed: int) -> Program:
    shape = Shape(lines_too=True, calls_too=True, ends=False, interval=0.1)
    return Program((shape,), FILES, (Life("drain", 0.3 * (seed % 5)), END))


def input_that_comes_between_two_runs(seed: int) -> Program:
    """The first run dies in a micro-batch without input."""
    late = tuple(replace(file, seconds=1.5) for file in FILES)
    lives = (Life("crash", 12.0 + seed % 24), Life("drain", 0.0, pause=3.0), END)
    # Its trigger has a micro-batch begin each second.
    return Program((Shape(ends=False, files_per_batch=1, trigger="by the clock"),), late, lives)


def input_that_comes_between_two_finite_runs(seed: int) -> Program:
    late = (*AT_ONCE[:2], *(replace(file, seconds=2.5) for file in FILES[2:]))
    lives = (Life("crash", 28.0 + seed % 12), Life(pause=3.0))
    return Program((Shape(grouping="none", interval=0.5),), late, lives)


def a_clock_that_is_set_back(seed: int) -> Program:
    lives = (Life("drain", 0.1 * (seed % 10)), END)
    files = tuple(Arriving(0.0, f"{number:02d}.txt", (f"a,1,{number},{number}",)) for number in range(12))
    return Program((Shape(ends=False, files_per_batch=1),), files, lives, clock_step=-5.0)


def a_sink_that_is_given_up(seed: int) -> Program:
    shapes = (Shape(lines_too=True, files_per_batch=1), Shape(files_per_batch=1))
    return Program(shapes, AT_ONCE, (Life("crash", 20.0 + seed % 40), Life(shape=1)))


def a_watermark_that_waits_longer(seed: int) -> Program:
    """A try has other outputs than the next one."""
    shapes = (
        Shape(lines_too=True, files_per_batch=1, delay=0),
        Shape(lines_too=True, files_per_batch=1, delay=30),
    )
    return Program(shapes, AT_ONCE, (Life("crash", 24.0 + seed % 40), Life(shape=1)))


def a_table_and_another_watermark(seed: int) -> Program:
    """A crash, and then a watermark that waits longer or less long; a table keeps what it has."""
    shapes = a_watermark_that_waits_longer(0).shapes
    shapes = tuple(replace(shape, table_too=True, lines_too=seed % 3 == 0) for shape in shapes)
    if seed % 2:
        shapes = shapes[::-1]
    return Program(shapes, AT_ONCE, (Life("crash", 24.0 + seed // 2 % 80), Life(shape=1)))


def a_table_and_a_driver_that_stands_still(seed: int) -> Program:
    shape = Shape(files_per_batch=1, table_too=True, ends=False)
    stall = Life("stall", 20.0 + seed % 60, rival="takes over", rival_at=0.5, rival_machine="second")
    return Program((shape,), FILES, (stall, END))


def elements_that_wait_while_a_driver_stands_still(seed: int) -> Program:
    """Its tasks continue when another one has done their micro-batch, and the next run finds the state of both."""
    files = tuple(
        Arriving(max(0.0, 0.2 * number - 0.4), f"{number:02d}.txt", lines)
        for number, lines in enumerate(
            tuple(
                f"{'abc'[(number + place) % 3]},{1 + place},{4 * number + place},{10 * number + place}"
                for place in range(5)
            )
            for number in range(8)
        )
    )
    shape = Shape(windows="sessions", parts=("sided",), files_per_batch=4, delay=0, ends=False)
    stall = Life("stall", 20.0 + seed % 200, rival="polite", rival_at=0.7, rival_machine="second")
    return Program((shape,), files, (stall, END))


def a_driver_that_stands_still_at_its_end(seed: int) -> Program:
    shape = Shape(files_per_batch=(1, None)[seed % 2])
    stall = Life(
        "stall", 60.0 + seed % 200, rival="takes over", rival_at=1.5 + seed // 200, rival_machine="second"
    )
    return Program((shape,), AT_ONCE, (stall, END))


def a_driver_that_stands_still_at_its_plan(seed: int) -> Program:
    """Another one begins in its place, and dies in a micro-batch when the first one has gone on."""
    shape = Shape(grouping="none", files_per_batch=1, table_too=True, ends=False)
    files = tuple(
        Arriving(18 + number / 8, f"{number:02d}.txt", (f"a,1,{number},{number}",)) for number in range(24)
    )
    stall = Life("stall", 5.0 + seed % 2, rival="polite", rival_at=0.5, rival_machine="second")
    return Program((shape,), files, (stall, END))


def a_change_that_is_cut_off(seed: int) -> Program:
    shapes = (Shape(ends=False), Shape(ends=False, lines_too=True))
    lives = (Life("cancel", 2.5), Life("crash", 3.0 + seed % 8, shape=1), Life(shape=1))
    return Program(shapes, FILES, lives)


def a_start_that_is_cut_off(seed: int) -> Program:
    lives = (Life("cancel", 2.5), Life("crash", 3.0 + seed % 8), END)
    return Program((Shape(ends=False, table_too=True),), FILES, lives)


def a_side_input(seed: int) -> Program:
    return replace(by_machines(seed), shapes=(Shape(files_per_batch=1, parts=("sided",)),), lives=(END,))


def a_state(seed: int) -> Program:
    return replace(by_machines(seed), shapes=(Shape(files_per_batch=1, parts=("states",)),), lives=(END,))


def a_join(seed: int) -> Program:
    return replace(by_machines(seed), shapes=(Shape(files_per_batch=1, parts=("full",)),), lives=(END,))


def a_join_by_a_condition(seed: int) -> Program:
    return replace(by_machines(seed), shapes=(Shape(files_per_batch=1, parts=("near",)),), lives=(END,))


def a_join_by_validity(seed: int) -> Program:
    return replace(by_machines(seed), shapes=(Shape(files_per_batch=1, parts=("valid",)),), lives=(END,))


def a_join_of_sums(seed: int) -> Program:
    shape = Shape(files_per_batch=1, parts=("corrected",), delay=8)
    return replace(by_machines(seed), shapes=(shape,), lives=(END,))


def _changed(seed: int, **changes: Any) -> Program:
    program = by_machines(seed)
    lives = tuple(replace(life, shape=0) for life in program.lives)
    return replace(program, shapes=(replace(program.shapes[0], **changes),), lives=lives)


def a_table(seed: int) -> Program:
    return _changed(seed, table_too=True)


def a_log(seed: int) -> Program:
    return _changed(seed, source="log", more="")


def a_log_that_is_asked_seldom(seed: int) -> Program:
    drain = Life("drain", 0.5 * (seed % 12))
    return replace(_changed(seed, source="log", more="", poll=3.0, ends=False), lives=(drain, END))


def a_partition_that_comes_before_a_drain(seed: int) -> Program:
    random = Random(seed)
    files = [
        Arriving(random.random(), f"{number:02d}.txt", (f"a,1,{number},{number}",)) for number in range(3)
    ]
    shape = Shape(grouping="none", source="log", ends=False)
    return Program((shape,), tuple(sorted(files, key=lambda file: file.seconds)), (END,))


def two_sources(seed: int) -> Program:
    return _changed(seed, source="files", more="files")


def a_source_that_is_read_sooner(seed: int) -> Program:
    return _changed(seed, source="files", more="log", ends=True, files_per_batch=1)


def _written_anew(seed: int, **changes: Any) -> Program:
    """A run dies, the next one in the middle of rewriting the state, and a third one continues."""
    random = by_machines(seed)
    shape = replace(random.shapes[0], grouping="sum", mode="streaming", shards=1 + seed % 3, ends=True)
    lives = (Life("crash", 20.0 + seed % 60), Life("crash", 8.0 + seed % 40, shape=1), Life(shape=1))
    return replace(random, shapes=(shape, replace(shape, **changes)), lives=lives)


def state_that_is_divided(seed: int) -> Program:
    return _written_anew(seed, shards=4)


def levels_of_one_shard(seed: int) -> Program:
    """A run dies, and the next one continues with several levels in one operator."""
    program = _written_anew(seed, shards=1)
    shape = replace(program.shapes[1], parts=("totals",), windows="fixed")
    lives = (Life("crash", 20.0 + seed % 60), END)
    return replace(program, shapes=(shape,), lives=lives)


def one_shard_that_is_divided(seed: int) -> Program:
    program = levels_of_one_shard(seed)
    [shape] = program.shapes
    first, last = program.lives
    return replace(program, shapes=(shape, replace(shape, shards=3)), lives=(first, replace(last, shape=1)))


def shards_that_become_one(seed: int) -> Program:
    program = one_shard_that_is_divided(seed)
    return replace(program, shapes=program.shapes[::-1])


def a_writing_anew_that_is_cut_off(seed: int) -> Program:
    """The driver that continues, four drivers later, is on a cluster of the same size, and has the same plan."""
    program = state_that_is_divided(seed)
    first, second, last = program.lives
    cut_off = replace(second, at=28.0 + seed % 24)
    return replace(program, lives=(first, cut_off, *3 * (Life("crash", 1.0, shape=1),), last))


def long_lists_that_are_divided(seed: int) -> Program:
    program = state_that_is_divided(seed)
    shapes = (replace(shape, grouping="list", parts=()) for shape in program.shapes)
    return replace(program, shapes=tuple(shapes))


def one_source_more(seed: int) -> Program:
    program = _written_anew(seed, more="files", more_first=True)
    first, second = program.shapes
    changes: dict[str, Any] = {"source": "files", "parts": (), "table_too": False}
    first, second = replace(first, **changes, more=""), replace(second, **changes)
    return replace(program, shapes=(first, second))


def one_source_more_beneath_a_side_input(seed: int) -> Program:
    program = one_source_more(seed)
    return replace(program, shapes=tuple(replace(shape, parts=("sided",)) for shape in program.shapes))


def one_source_more_and_late_elements(seed: int) -> Program:
    program = one_source_more(seed)
    shapes = (replace(shape, windows="sliding", lateness=7, without=()) for shape in program.shapes)
    return replace(program, shapes=tuple(shapes))


def one_source_less(seed: int) -> Program:
    program = one_source_more(seed)
    return replace(program, shapes=program.shapes[::-1])


def a_table_and_another_source(seed: int) -> Program:
    """A crash, and then a source more or less, and another watermark; a table keeps what it has."""
    make = (one_source_more, one_source_less)[seed % 2]
    program = make(seed // 2)
    shapes = tuple(replace(shape, table_too=True) for shape in program.shapes)
    lives = (Life("crash", 20.0 + seed // 2 % 80), Life(shape=1))
    return replace(program, shapes=shapes, lives=lives)


def two_sources_that_are_drained(seed: int) -> Program:
    drain = Life("drain", 0.3 * (seed % 12))
    kinds = ("files", "log") if seed % 2 else ("files", "files")
    changes = {"source": kinds[0], "more": kinds[1], "ends": False, "files_per_batch": 1}
    return replace(_changed(seed, **changes), lives=(drain, END))


KNOWN = (
    Mutant(
        "a stream that has failed is done",
        StreamRun,
        "_follow",
        "raise self._cause_of_death()",
        "return",
        seed=5,
    ),
    Mutant(
        "a query that has just failed seems to rest",
        StreamRun,
        "_is_resting",
        ' and status["message"] == _WAITING',
        "",
        make=a_full_disk,
        seed=4,
    ),
    Mutant(
        "a second run is not refused",
        lease,
        "take_lease",
        "if not take_over and is_held(place, earlier, timing):",
        "if False:",
        seed=28,
    ),
    Mutant(
        "a run that takes over does not wait",
        lease,
        "take_lease",
        "_wait_until(lambda: not is_held(place, earlier, timing), place.location)",
        "pass",
        seed=66,
    ),
    Mutant(
        "a run reads in more tasks, or in fewer, than the one in whose place it continues",
        folder,
        "_continue_checkpoint",
        'plan["parallelism"] = old["parallelism"]',
        "pass",
        make=elements_that_wait_while_a_driver_stands_still,
        seed=227,
    ),
    Mutant(
        "a run gives no sign of life",
        lease.Lease,
        "_keep",
        "self._beat()",
        "pass",
        make=a_second_driver_elsewhere,
    ),
    Mutant(
        "a drain ends the sources at once",
        StreamRun,
        "_is_drained",
        "if self._backlog.labels():",
        "if False:",
        seed=47,
    ),
    Mutant(
        "a run that has ended continues",
        folder,
        "open_at",
        "if ENDED in place.names():",
        "if False:",
        seed=1,
    ),
    Mutant(
        "a run fails if another one has noted the end",
        folder.Checkpoint,
        "note_end",
        "if ENDED not in self.place.names():",
        "if True:",
        make=a_driver_that_stands_still_at_its_end,
        seed=1028,
    ),
    Mutant(
        "reports count before their micro-batch is written",
        StreamRun,
        "_fold",
        "take_reports(metrics, run, batch)",
        "take_reports(metrics, run)",
        make=two_sinks,
        seed=51,
        also=(
            Mutant("a run does not wait for its writes", StreamRun, "_watch", "self.close_sinks()", "pass"),
        ),
    ),
    Mutant(
        "a run is done although its last micro-batch has failed",
        BatchWriter,
        "close",
        "raise self._failure",
        "pass",
        make=a_full_disk_after_the_end,
        seed=595,
    ),
    Mutant(
        "a drain trusts what an earlier run has planned",
        StreamRun,
        "_last_planned",
        "self.checkpoint.last_begun) + 1",
        "-1)",
        make=input_that_comes_between_two_runs,
        seed=4,
    ),
    Mutant(
        "a finite stream trusts what an earlier run has planned",
        running,
        "nothing_comes_after",
        " and not is_planned_before",
        "",
        make=input_that_comes_between_two_finite_runs,
        seed=5,
    ),
    Mutant(
        "a stream does not go on after the clock was set back",
        clock_resets,
        "_eras_from_now_on",
        "if now_millis >= start_millis + planned * 1_000:",
        "if True:",
        seed=939,
    ),
    Mutant(
        "a drain trusts the clock of the files",
        Backlog,
        "_is_read",
        "self._asked_millis + _CLOCKS_MILLIS",
        "self._asked_millis",
        make=a_clock_that_is_set_back,
    ),
    Mutant(
        "what a sink that was given up has left, stays",
        _Writing,
        "_commit",
        "if batch.may_be_retry:",
        "if not batch.stream:",
        make=a_sink_that_is_given_up,
        seed=0,
    ),
)
"""Each takes out the fix of a defect that was found by the simulation, or is in docs/decisions/0018."""

ORDER = (
    Mutant(
        "a micro-batch that comes again leaves the files of the try before",
        BatchWriter,
        "_write_checked",
        "may_be_retry = self._last_begun is None or batch_id <= self._last_begun",
        "may_be_retry = False",
        make=a_watermark_that_waits_longer,
        seed=7,
    ),
    Mutant(
        "a sink that gets nothing in the second try keeps what it got in the first",
        BatchWriter,
        "_write_each",
        "elif may_be_retry:",
        "elif False:",
        make=a_watermark_that_waits_longer,
        seed=7,
    ),
    Mutant(
        "files have no number of the micro-batch",
        MicroBatch,
        "name",
        'f"batch-{self.number:06d}" if',
        '"batch-000000" if',
    ),
    Mutant(
        "every file in the folder counts, whichever attempt has written it",
        _Writing,
        "_by_tasks",
        "return [_parse_row(row.file, temporary) for row in frame.collect()]",
        'return frame.collect() and [_Written("", f"{temporary}/{name}") for name in system.names(temporary, "0")]',
        seed=5,
    ),
    Mutant(
        "stale files are looked for after the new ones have their names, and one of these goes",
        _Writing,
        "_commit",
        "for inside, name in stale:\n",
        'for inside, name in stale or [("", os.path.basename(path)) for path in paths[1:]]:\n',
        seed=1,
    ),
    Mutant("the temporary folder stays", _Writing, "_commit", "end(system, temporary)", "pass", seed=8),
    Mutant(
        "files of the checkpoint can be seen before they are whole",
        Place,
        "write",
        "self._files.write(self._child(hidden), content, replaces=False)\n    self.rename(hidden, name)",
        "self._files.write(self._child(name), content)",
        seed=117,
    ),
    Mutant(
        "the old plan goes before the new one is there",
        folder,
        "open_at",
        "write_plan(place, kept)",
        "forget_plans_before(place, kept)\n    write_plan(place, kept)",
        make=a_start_that_is_cut_off,
        seed=4,
    ),
    Mutant(
        "the plan in force goes when there is a later one",
        plans,
        "forget_plans_before",
        " and number != plan.before",
        "",
        make=a_change_that_is_cut_off,
        seed=7,
    ),
    Mutant(
        "a plan is numbered by what is there",
        folder,
        "open_at",
        "if lease is None else lease.number",
        "if True else lease.number",
        make=a_driver_that_stands_still_at_its_plan,
        seed=24,
    ),
    Mutant(
        "the end is noted of a run that was cancelled",
        StreamRun,
        "_stop",
        "if (self.shards or self.about.has_groupings) and is_good and not self._has_paused:",
        "if not is_good:",
        seed=1,
    ),
    Mutant(
        "a run is over when its sources are read",
        StreamRun,
        "_is_over",
        "reports.earliest_micros() >= MAX_MICROS",
        "True",
        seed=2,
    ),
    Mutant(
        "the lease is given back before the query has stopped",
        StreamRun,
        "_stop",
        "try:\n        self.started.stop()",
        "self.checkpoint.release()\n    try:\n        self.started.stop()",
        seed=9,
    ),
    Mutant(
        "files that another stream has left are looked for at every start",
        BatchWriter,
        "prepare",
        "labels is None or sink.step.label in labels",
        "True",
    ),
    Mutant(
        "a shard forgets its watermarks",
        tasks,
        "run_shard",
        "pages.updateValue(header_key(position),",
        "(lambda *_: None)(position,",
        seed=1,
    ),
    Mutant(
        "a level of one operator gets nothing of the level before it",
        tasks,
        "run_shard",
        "partial(levels.take, later) for later",
        "(lambda payload: None) for later",
        make=levels_of_one_shard,
        seed=1,
    ),
    Mutant(
        "a level gets the header of another one when the operators are other ones",
        resharding.Rewriting,
        "_known",
        "header_key(operator.index(level))",
        "header_key(0)",
        make=one_shard_that_is_divided,
        seed=24,
    ),
    Mutant(
        "the state of one level only comes into one operator",
        tasks,
        "take_seeds",
        "for level in levels}",
        "for level in levels[:1]}",
        make=shards_that_become_one,
        seed=15,
    ),
    Mutant(
        "a shard forgets its keys",
        shard.Shard,
        "save",
        "operator.save()",
        "pass",
        seed=1,
    ),
    Mutant(
        "counters are read twice",
        metrics,
        "take_snapshots",
        "held.pop(key)",
        "held[key]",
        seed=2,
    ),
    Mutant(
        "the watermark passes what holds it",
        shard,
        "_leaving_micros",
        "micros if hold_micros is None else min(micros, hold_micros)",
        "micros",
        seed=3,
    ),
)
"""Breaks of the order of commits, and of what is committed."""

OF_PARTS = (
    Mutant(
        "an element does not wait for its side input",
        WaitingOperator,
        "arrive",
        "{window for window in windows if machine.missing(state, window, times)} - gone",
        "set()",
        make=a_side_input,
    ),
    Mutant(
        "an element that waits is not stored",
        WaitingOperator,
        "save",
        "in self._arrived.items()",
        "in ()",
        make=a_side_input,
    ),
    Mutant(
        "an element that is too late for its side input sees an empty one",
        WaitingOperator,
        "arrive",
        "{window for window in windows if machine.is_gone(window, times)}",
        "set()",
        make=a_side_input,
        seed=4,
    ),
    Mutant(
        "what a key waits for is not stored",
        KeyTable,
        "save",
        "stored, live.alarms,",
        "stored, {},",
        make=a_state,
    ),
    Mutant(
        "a state is stored as it was",
        KeyTable,
        "save",
        "kept = stored, live",
        "kept = live.before or stored, live",
        make=a_state,
        seed=0,
    ),
)
"""Breaks of what single parts keep from one micro-batch to the next."""

OF_TABLES = (
    Mutant(
        "the rows are committed before the number of their micro-batch",
        PostgresWriter,
        "commit",
        "self._merge(connection, pages)",
        "self._merge(connect(self.address), pages)",
        make=a_table,
        seed=3,
    ),
    Mutant(
        "the number of a micro-batch is committed before its rows",
        PostgresWriter,
        "_begin_batch",
        "return connection.execute(update,",
        "return connect(self.address).execute(update,",
        make=a_table,
        seed=1,
    ),
    Mutant(
        "a micro-batch that is in the table is written again",
        PostgresWriter,
        "_begin_batch",
        "return begin_batch(known, note, self.driver, batch, self.address)",
        "return bool(note(known[0][0]))",
        make=a_table,
        seed=9,
    ),
    Mutant(
        "nobody counts the rows that a crash of the server may have taken",
        PostgresWriter,
        "_merge",
        "if count_staged(connection, self.address, table) != page.rows:",
        "if False:",
        make=a_table,
        seed=1,
    ),
    Mutant(
        "rows that a crash of the server has taken are not made again",
        errors,
        "are_rows_lost",
        "if isinstance(error, RowsLost):",
        "if False:",
        make=a_table,
        seed=1,
    ),
    Mutant(
        "a driver takes the tables of its tasks for dropped",
        PostgresWriter,
        "tidy",
        "if self._is_tidy and not self._has_left:",
        "if True:",
        make=a_table,
        seed=26,
    ),
    Mutant(
        "the tables of a driver that has died stay",
        PostgresWriter,
        "_begin",
        "if other != self.driver and _try_lock(connection, other):",
        "if False:",
        make=a_table,
        seed=100,
    ),
    Mutant(
        "a micro-batch that is in the table runs again for a changed program",
        folder,
        "_finish_written",
        "if begun <= finished or not is_written(latest, begun):",
        "if True:",
        make=a_table_and_another_watermark,
        seed=29,
    ),
    Mutant(
        "a micro-batch that is in the table runs again with other sources",
        folder,
        "_finish_written",
        "if begun <= finished or not is_written(latest, begun):",
        "if True:",
        make=a_table_and_another_source,
        seed=63,
    ),
    Mutant(
        "tables are written before files",
        batch_writer,
        "_in_order",
        "return tuple(sorted(sinks, key=place))",
        "return tuple(sorted(sinks, key=place, reverse=True))",
        make=a_table,
        seed=7,
    ),
    Mutant(
        "a driver that stood still takes over a table from the run in its place",
        postgres,
        "claim_stream",
        '" WHERE known.claim <= excluded.claim"',
        '""',
        make=a_table_and_a_driver_that_stands_still,
        seed=252,
    ),
)
"""Breaks of what a table of a database keeps, and in which order."""

OF_LOGS = (
    Mutant(
        "a micro-batch that comes again reads what has come since",
        Positions,
        "ranges",
        "self._source.ranges(start, end, self._parallelism)",
        "self._source.ranges(start, self._source.last_position(end, None), self._parallelism)",
        make=a_log,
    ),
    Mutant(
        "a new partition is read from where it ends",
        NumberedSource,
        "last_position",
        "partition: first for partition, (first, _) in bounds.items()",
        "partition: end for partition, (_, end) in bounds.items()",
        make=a_log,
        seed=2,
    ),
    Mutant(
        "a range that breaks off gives its first elements again",
        reading._Reading,
        "_next_new",
        "iter(self._source.read(self._piece)), self._given",
        "iter(self._source.read(self._piece)), 0",
        make=a_log,
        seed=15,
    ),
    Mutant(
        "a source that cannot be reached has nothing new",
        Planner,
        "latest",
        "if not self.positions.is_away:",
        "if True:",
        make=a_log,
        seed=29,
    ),
    Mutant(
        "a source that cannot be reached has been read",
        running,
        "nothing_comes_after",
        " or is_away(end)",
        "",
        make=a_log,
        seed=109,
        also=(
            Mutant(
                "a query rests that waits for a source",
                StreamRun,
                "_ends_by_pausing",
                "if self._is_any_away or self._last_finished() not in (None, self._batch):",
                "if False:",
            ),
        ),
    ),
    Mutant(
        "a drain trusts what a source has seen before",
        Backlog,
        "poll_seconds",
        "max((reading.poll_seconds for reading in self._readings), default=0.0)",
        "0.0",
        make=a_log_that_is_asked_seldom,
        seed=26,
    ),
    Mutant(
        "a drain takes what is announced for read",
        Backlog,
        "_is_read",
        "return self._seen[number] > self._readings[number].announces",
        "return True",
        make=a_partition_that_comes_before_a_drain,
        seed=12,
    ),
    Mutant(
        "a drain does not wait for a source that cannot be reached",
        Backlog,
        "_is_read",
        "if is_away(end):",
        "if False:",
        make=a_log,
        seed=59,
    ),
)
"""Breaks of how a source that a user has written is read."""

OF_SOURCES = (
    Mutant(
        "a grouping has the watermark of its earliest source",
        shard.Shard,
        "_with_watermark",
        "micros = min(map(header.watermark_of, origins))",
        "micros = max(map(header.watermark_of, origins))",
        make=two_sources,
        seed=1,
    ),
    Mutant(
        "all sources end with the first one",
        StreamRun,
        "_is_over",
        "if reading.ends_when_read and done:",
        "if reading.ends_when_read and any(is_read):",
        make=a_source_that_is_read_sooner,
        seed=2,
    ),
    Mutant(
        "a drain waits for the first source only",
        Backlog,
        "__init__",
        "self._behind = set(range(len(readings)))",
        "self._behind = {0}",
        make=two_sources_that_are_drained,
        seed=7,
    ),
    Mutant(
        "a source has read what another one has read",
        Backlog,
        "see_progress",
        'progress["sources"][self._first + number]',
        'progress["sources"][self._first]',
        make=two_sources_that_are_drained,
        seed=7,
    ),
    Mutant(
        "what waits for a source that is given up waits on",
        shard.Shard,
        "_catch_up",
        "if not behind:",
        "if True:",
        make=one_source_less,
        seed=85,
    ),
)
"""Breaks of what several sources have to do with each other."""

OF_REWRITING = (
    Mutant(
        "nothing is planned in a folder that is written anew",
        folder,
        "open_at",
        '_last(place, plans[-1].content["folder"], "offsets")',
        '_last(place, opened.plan["folder"], "offsets")',
        make=one_source_more,
        seed=29,
    ),
    Mutant(
        "the plan refers to a folder before it is whole",
        folder,
        "open_at",
        "rewrite(opened, plans[-1].content)",
        "write_plan(place, KeptPlan(number, opened.plan, plans[-1].number))\n"
        "        rewrite(opened, plans[-1].content)\n        place.delete(name_of_plan(number))",
        make=a_writing_anew_that_is_cut_off,
        seed=10,
    ),
    Mutant(
        "keys stay where they are when there are more shards",
        moved_pages,
        "_key_pages",
        "shard_of(name, shards)",
        "0",
        make=state_that_is_divided,
        seed=34,
    ),
    Mutant(
        "segments of lists get the numbers of others when there are more shards",
        merged_headers,
        "_notes",
        "header.notes.keys() & division.kept",
        "()",
        make=long_lists_that_are_divided,
        seed=10,
    ),
    Mutant(
        "a list that takes more loses a segment",
        segments.Segments,
        "replace",
        "before.keys() - after.keys()",
        "[*before][:1]",
        make=long_lists_that_are_divided,
        seed=10,
    ),
    Mutant(
        "a source is read from its beginning when it has another place",
        resharding,
        "move_offsets",
        "offsets[place] for place in places",
        "(offsets[place] if place == number else '-') for number, place in enumerate(places)",
        make=one_source_more,
        seed=6,
    ),
    Mutant(
        "the state is read of the micro-batch before",
        resharding.Rewriting,
        "_renumber",
        "self.last + 1",
        "self.last",
        make=state_that_is_divided,
        seed=7,
    ),
    Mutant(
        "a side input does not wait for a source that is added",
        resharding,
        "find_dependent_steps",
        "return found",
        "return set()",
        make=one_source_more_beneath_a_side_input,
        seed=16,
    ),
    Mutant(
        "a window that is open again has ended for all keys",
        window_table.WindowTable,
        "_opened",
        "elif live.column.is_past_end and",
        "elif False and",
        make=one_source_more_and_late_elements,
        seed=36,
    ),
    Mutant(
        "a window that is open again has ended for no key",
        window_table.WindowTable,
        "_add_cells",
        "if not column.is_past_end:",
        "if False:",
        make=one_source_more_and_late_elements,
        seed=7,
    ),
)
"""Breaks of how Spark's part of a checkpoint is written anew."""

OF_JOINS = (
    Mutant(
        "a row without a match is not taken back when a match comes",
        joins,
        "_effect",
        "return _unmatched(kind, 1 - side, _rows_in(other)), joined",
        "return (), joined",
        make=a_join,
    ),
    Mutant(
        "a row that is taken back stays in a join",
        joins,
        "_take",
        "counts.remove(timed)",
        "pass",
        make=a_join_of_sums,
        seed=7,
    ),
    Mutant(
        "a join gives the pair of a new row with its first match only",
        joins,
        "_effect",
        "for one in _rows_in(other)] if kind.matched",
        "for one in [*_rows_in(other)][:1]] if kind.matched",
        make=a_join,
    ),
    Mutant(
        "a join counts equal rows once",
        joins,
        "_put",
        "counts.put(timed, counts.get(timed) + 1)",
        "pass",
        make=a_join,
        seed=20,
    ),
    Mutant(
        "a row that has another match is without a match",
        joins.JoinFn,
        "_effect_of_matching",
        "if not any(self._match(side, each, one) for each in _rows_in(own))",
        "",
        make=a_join_by_a_condition,
    ),
    Mutant(
        "a pair has the event time of the row that came last",
        joins,
        "_pair",
        "max(micros, other_micros)",
        "micros",
        make=a_join_by_a_condition,
    ),
    Mutant(
        "rows also keep the value that was valid when they came",
        validity,
        "compute_difference",
        "    if len(before) ==",
        "    before = [row for row in before if row in after]\n    if len(before) ==",
        make=a_join_by_validity,
    ),
    Mutant(
        "a value is not valid yet at its own event time",
        validity,
        "match_rows",
        "row[0] < valid[0].start",
        "row[0] <= valid[0].start",
        make=a_join_by_validity,
    ),
)
"""Breaks of joins of rows."""

MUTANTS = (
    *KNOWN,
    *ORDER,
    *OF_PARTS,
    *OF_TABLES,
    *OF_LOGS,
    *OF_SOURCES,
    *OF_REWRITING,
    *OF_JOINS,
    *OF_NATIVE_STREAMS,
)
