"""Deliberate breaks of the rules by which drivers run streams that Spark's own aggregate computes."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from penstock_spark.checkpoints.custody import folder
from penstock_spark.files import temporary
from penstock_spark.lowering import native_stream, readings
from penstock_spark.lowering.batch_writer import BatchWriter
from penstock_spark.lowering.query import Query
from penstock_spark.plan.stream_plan import StreamPlan
from penstock_spark.runs import execute_stream
from penstock_spark.runs.running import StreamRun
from penstock_spark.stream.sources.sums import SummingTask
from tests.simulation import simulated_spark
from tests.simulation.mutant import Mutant
from tests.simulation.stream_programs import Arriving, Life, Program, Shape, random_program


def a_native_stream(seed: int) -> Program:
    """A program at random with a grouping that Spark's own aggregate does."""
    return random_program(seed, native=1.0)


def _changed(seed: int, **changes: Any) -> Program:
    program = a_native_stream(seed)
    shapes = tuple(replace(shape, **changes) for shape in program.shapes)
    return replace(program, shapes=shapes)


def rounds_of_all_time(seed: int) -> Program:
    """In global windows, which wait for no watermark."""
    return _changed(seed, windows="global", mode="micro_batch", lateness=0)


def columns_in_a_table(seed: int) -> Program:
    """A table keeps what it has; a file is of another kind, and comes after the first run has begun."""
    shape = Shape(
        host="columns",
        mode="micro_batch",
        accumulation="accumulating",
        table_too=True,
        files_per_batch=1,
        ends=False,
    )
    files = tuple(
        Arriving(1.0 + number, f"{number:02d}.txt", (f"a,{'+' * (number == 2)}1,{number},{number}",))
        for number in range(4)
    )
    return Program((shape,), files, (Life("finish"), Life("finish", at=seed / 10)))


def a_cut_off_at_any_step(seed: int) -> Program:
    """A run dies at one of its steps, and another one comes to the end, in which nothing new arrives."""
    shape = Shape(
        host=("columns", "parts")[seed % 2],
        mode="micro_batch" if seed % 2 else "streaming",
        accumulation="accumulating",
    )
    files = tuple(Arriving(0.0, f"{number:02d}.txt", (f"a,1,{14 * number},{number}",)) for number in range(2))
    return Program((shape,), files, (Life("crash", 20.0 + seed // 2 % 60), Life("finish")))


def a_table_that_is_cut_off(seed: int) -> Program:
    """A run dies when a table has its last micro-batch, and Spark has not noted that."""
    program = a_cut_off_at_any_step(seed)
    shapes = tuple(replace(shape, table_too=True) for shape in program.shapes)
    return replace(program, shapes=shapes)


def windows_that_are_due_at_a_restart(seed: int) -> Program:
    """A run dies at one of its steps, and the next one waits for data that does not come."""
    shape = Shape(host=("columns", "parts")[seed % 2], accumulation="accumulating", ends=False)
    shape = replace(shape, mode="micro_batch" if seed % 2 else "streaming")
    files = a_cut_off_at_any_step(seed).files
    return Program(
        (shape,), files, (Life("crash", 20.0 + seed // 2 % 60), Life("cancel", 12.0), Life("finish"))
    )


def a_run_that_is_displaced_while_it_writes(seed: int) -> Program:
    """It stands still, and continues when another one writes in its place."""
    shape = Shape(
        host="columns",
        is_written=True,
        mode="micro_batch",
        accumulation="accumulating",
        files_per_batch=1,
        ends=False,
        shards=3,
    )
    at = Random(seed)
    pauses = [0.2 + 0.15 * number * (1 if number < 6 else 6) for number in range(24)]
    files = tuple(
        Arriving(
            seconds,
            f"{number:02d}.txt",
            tuple(f"{key},1,{number},{10 * number + place}" for place, key in enumerate("abcdef")),
        )
        for number, seconds in enumerate(sorted(pause + at.random() for pause in pauses))
    )
    rival_at = 0.5 + 2 * at.random()
    stall = Life("stall", 20.0 + seed % 120, rival="takes over", rival_at=rival_at, rival_machine="second")
    return Program((shape,), files, (stall, Life()))


OF_NATIVE_STREAMS = (
    Mutant(
        "windows that are due at a restart wait for data",
        StreamRun,
        "_follow",
        'self.checkpoint.command("continue")',
        "pass",
        make=windows_that_are_due_at_a_restart,
        seed=6,
    ),
    Mutant(
        "a restart ends the source",
        native_stream,
        "_ends",
        '"drain", "end"',
        '"drain", "end", "continue"',
        make=a_native_stream,
        seed=0,
    ),
    Mutant(
        "the end of a source ends no window",
        native_stream,
        "_ends",
        ', "end"',
        "",
        make=a_native_stream,
        seed=1,
    ),
    Mutant("a drain ends no window", native_stream, "_ends", '"drain", ', "", make=a_native_stream, seed=4),
    Mutant(
        "Spark's own aggregate is not told that the source has ended",
        StreamRun,
        "_end",
        "if reading.spec.readers or reading.has_windows:",
        "if reading.spec.readers:",
        make=a_native_stream,
        seed=1,
    ),
    Mutant(
        "Spark waits for data although windows are due",
        execute_stream,
        "_configure",
        'context.backend.set(_WITHOUT_DATA, "true")',
        "pass",
        make=a_native_stream,
        seed=1,
    ),
    Mutant(
        "a run does not wait until the windows of Spark's own aggregate have fired",
        execute_stream,
        "_running",
        " + (plan.native_grouping is not None)",
        "",
        make=a_native_stream,
        seed=1,
    ),
    Mutant(
        "the end is not noted of a run without windows",
        StreamRun,
        "_stop",
        "if (self.shards or self.about.has_groupings) and is_good and not self._has_paused:",
        "if self.shards and is_good:",
        make=rounds_of_all_time,
    ),
    Mutant(
        "what the last micro-batch has dropped does not count",
        StreamRun,
        "_stop",
        "self._new_progress()",
        "pass",
        make=a_native_stream,
        seed=806,
    ),
    Mutant(
        "two runs of a stream write in one folder",
        temporary,
        "name_of_claim",
        "if claim else name",
        "if False else name",
        make=a_run_that_is_displaced_while_it_writes,
    ),
    Mutant(
        "files are looked at when their micro-batch is written",
        BatchWriter,
        "_write_checked",
        """self.files.begin(frame)
            self._write(frame, batch_id, may_be_retry)""",
        """pass
            self._write(frame, batch_id, may_be_retry)
            self.files.begin(frame)""",
        make=columns_in_a_table,
    ),
    Mutant(
        "files are not looked at before Spark reads them",
        readings,
        "open_reading",
        "check_files=scan.check_files if columns is not None else None",
        "check_files=None",
        make=columns_in_a_table,
    ),
    Mutant(
        "the files of another source are looked at",
        Query,
        "file_checks",
        "enumerate(self.readings, self.first_reading)",
        "enumerate(self.readings, self.first_reading + 1)",
        make=columns_in_a_table,
    ),
    Mutant(
        "penstock notes a micro-batch without its watermark",
        folder,
        "_finish_written",
        'if latest.get("native"):',
        "if False:",
        make=a_table_that_is_cut_off,
        seed=40,
    ),
    Mutant(
        "Spark's own aggregate emits a window of a round at its end",
        StreamPlan,
        "updates",
        'self.mode == "micro_batch" and self.by_spark is not None',
        "False",
        make=a_native_stream,
        seed=6,
    ),
    Mutant(
        "windows do not wait for what is out of order",
        native_stream,
        "_watermark",
        "stream.watermark.delay_micros,",
        "0,",
        make=a_native_stream,
        seed=5,
    ),
    Mutant(
        "windows take nothing that is late",
        native_stream,
        "_watermark",
        "grouping.windowing.allowed_lateness.micros,",
        "0,",
        make=a_native_stream,
        seed=176,
    ),
    Mutant(
        "the sums of a task are grouped with the row that moves the watermark",
        native_stream,
        "sums_of",
        "rows.where(F.col(MOVES).isNull())",
        "rows",
        make=a_native_stream,
        seed=6,
    ),
    Mutant(
        "a task that adds up does not tell how far event time has come",
        SummingTask,
        "parts",
        "if latest:",
        "if False:",
        make=a_native_stream,
        seed=28,
    ),
    Mutant(
        "Spark forgets its watermark at a restart",
        simulated_spark.Query,
        "_recovered",
        "self._watermark_micros = watermark_after(self.disk, self.location, last)",
        "pass",
        make=a_native_stream,
        seed=28,
    ),
    Mutant(
        "Spark loads the state of another micro-batch at a restart",
        simulated_spark.Query,
        "_partition",
        "if batch else File({}, 0)",
        "if batch and self._evicted_micros is not None else File({}, 0)",
        make=a_cut_off_at_any_step,
        seed=6,
    ),
)
"""Breaks of what drivers do around Spark's own aggregate."""
