"""What Spark cannot do is said in three parts: what has happened, which step or source, and what to do."""

from __future__ import annotations

import gzip
import logging
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
from tests.spark.readable import assert_readable, failure_of

HERE = Path(__file__).name


def half_of(path, content):
    path.write_bytes(content[: len(content) // 2])
    return str(path)


def noise():
    return "".join(random.Random(3).choices("0123456789abcdef\n", k=40_000)).encode()


def parquet(path):
    pq.write_table(pa.table({"n": list(range(50_000))}), path)
    return path.read_bytes()


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_a_part_of_a_compressed_file_is_an_error_that_names_file_and_source(tmp_path, mode):
    whole = tmp_path / "other.txt"
    whole.write_text("whole\n")
    file = half_of(tmp_path / "lines.txt.gz", gzip.compress(noise()))

    def build(pipeline):
        pipeline | "Whole" >> beam.io.ReadFromText(str(whole)) | "W" >> beam.Map(str)
        pipeline | "Half" >> beam.io.ReadFromText(file) | "H" >> beam.Map(str)

    assert_readable(failure_of(build, mode=mode), f"{file} is damaged", f"at step 'Half' ({HERE}:")


@pytest.mark.parametrize("part", ["end", "middle"])
def test_a_damaged_parquet_file_is_an_error_that_names_file_and_source(tmp_path, part):
    content = parquet(tmp_path / "whole.parquet")
    file = tmp_path / "numbers.parquet"
    middle = content[:1000] + bytes(len(content) - 2000) + content[-1000:]
    file.write_bytes(content[: len(content) // 2] if part == "end" else middle)

    def build(pipeline):
        pipeline | "Half" >> beam.io.ReadFromParquet(str(file)) | beam.Map(str)

    assert_readable(failure_of(build), str(file), f"at step 'Half' ({HERE}:")


READS = {
    "plain text": ("txt", beam.io.ReadFromText),
    "text with a header": ("txt", lambda path: beam.io.ReadFromText(path, skip_header_lines=1)),
    "csv": ("csv", beam.io.ReadFromCsv),
    "json": ("json", lambda path: beam.io.ReadFromJson(path, orient="records", lines=True)),
    "text of two bytes": ("txt", lambda path: beam.io.ReadFromText(path, delimiter=b"\r\n")),
}


def lines_of(kind, count):
    line = '{"a": 1}\n' if kind == "json" else "1\r\n"
    return ("a\r\n" if kind == "csv" else "") + line * count


@pytest.mark.parametrize("name", READS)
def test_a_file_that_becomes_shorter_while_it_is_read_is_an_error(tmp_path, name, monkeypatch):
    """It is cut off between the moment when it is found and the first task."""
    from penstock_spark.lowering import jobs

    kind, read = READS[name]
    file = tmp_path / f"lines.{kind}"
    file.write_text(lines_of(kind, 1_000))
    opened = jobs.open_sources

    def then_cut(plan, context):
        opened(plan, context)
        file.write_text(lines_of(kind, 10))

    monkeypatch.setattr(jobs, "open_sources", then_cut)

    def build(pipeline):
        pipeline | "Read" >> read(str(file)) | beam.Map(str)

    error = failure_of(build)
    assert isinstance(error, OSError)
    assert_readable(error, f"{file} cannot be read: it was truncated", "at step 'Read")


@pytest.mark.xfail(
    strict=True, reason="nobody can compare once Spark alone has read the frame: docs/running.md"
)
def test_a_file_that_becomes_shorter_before_a_frame_is_read_is_an_error(tmp_path):
    file = tmp_path / "lines.csv"
    file.write_text(lines_of("csv", 1_000))
    frame = beam.io.to_dataframe(beam.Pipeline() | beam.io.ReadFromCsv(str(file)), "a long")
    file.write_text(lines_of("csv", 10))
    with pytest.raises(OSError, match="it was truncated"):
        frame.collect()


def test_a_stream_does_not_go_on_from_a_bounded_file_that_has_become_shorter(tmp_path, monkeypatch):
    from penstock_spark.lowering import readings

    file = tmp_path / "lines.csv"
    file.write_text(lines_of("csv", 1_000))
    scan = readings._scan

    def then_cut(*args):
        opened = scan(*args)
        file.write_text(lines_of("csv", 10))
        return opened

    monkeypatch.setattr(readings, "_scan", then_cut)

    def build(pipeline):
        pipeline | "Read" >> beam.io.ReadFromCsv(str(file)) | beam.Map(str)

    error = failure_of(build, mode="streaming", checkpoint_location=str(tmp_path / "checkpoint"))
    assert_readable(error, f"{file} cannot be read: it was truncated", "at step 'Read")
    assert not list((tmp_path / "checkpoint").glob("inputs-*/*/_complete"))


def test_a_folder_where_a_file_is_written_is_named(tmp_path):
    (tmp_path / "out-00000-of-00001").mkdir()

    def build(pipeline):
        pipeline | beam.Create(["a"]) | "Out" >> beam.io.WriteToText(str(tmp_path / "out"), num_shards=1)

    error = failure_of(build)
    assert isinstance(error, IsADirectoryError)
    assert_readable(error, "out-00000-of-00001 cannot be written", "at step 'Out")


@pytest.mark.parametrize("mode", ["batch", "streaming"])
@pytest.mark.parametrize("format", ["text", "parquet", "csv"])
def test_a_file_where_a_folder_has_to_be_is_named(tmp_path, mode, format):
    (tmp_path / "file").write_text("")
    path = str(tmp_path / "file" / "out")
    writes = {
        "text": beam.io.WriteToText(path),
        "parquet": beam.io.WriteToParquet(path, pa.schema([("a", pa.int64())])),
        "csv": beam.io.WriteToCsv(path),
    }

    def build(pipeline):
        rows = pipeline | beam.Create([{"a": 1}])
        if format == "csv":
            rows = rows | beam.Map(lambda row: beam.Row(a=row["a"]))
        (rows | beam.Map(str) if format == "text" else rows) | "Out" >> writes[format]

    assert_readable(failure_of(build, mode=mode), str(tmp_path / "file"), "at step 'Out")


def test_a_full_disk_is_named_with_the_step_that_writes(tmp_path):
    """/dev/full has no room for a byte."""
    if not os.path.exists("/dev/full"):
        pytest.skip("the system has no /dev/full")

    def writes(element):
        with open("/dev/full", "w") as file:
            file.write(element)

    def build(pipeline):
        pipeline | beam.Create(["a"]) | "Out" >> beam.Map(writes)

    error = failure_of(build)
    assert isinstance(error, OSError)
    assert "No space left on device" in str(error)
    assert "[while running 'Out'" in str(error)


def counting(tmp_path):
    def build(pipeline):
        pairs = pipeline | beam.Create(["a", "b"]) | beam.Map(lambda x: (x, 1))
        pairs | beam.CombinePerKey(sum) | beam.Map(str) | beam.io.WriteToText(str(tmp_path / "out"))

    return build


def test_a_checkpoint_below_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    location = str(tmp_path / "file" / "checkpoint")
    error = failure_of(counting(tmp_path), mode="streaming", checkpoint_location=location)
    assert_readable(error, f"{tmp_path / 'file'} cannot be written", f"in the checkpoint {location}")


def test_a_damaged_checkpoint_is_named(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    pipeline = beam.Pipeline(
        options=PipelineOptions([], mode="streaming", checkpoint_location=str(checkpoint))
    )
    counting(tmp_path)(pipeline)
    pipeline.run().wait_until_finish()
    # As if the driver had died before it noted the end.
    (checkpoint / "ended.json").unlink()
    (checkpoint / "spark" / "commits" / "0").unlink()
    (checkpoint / "spark" / "offsets" / "0").write_bytes(b"\0nothing")
    error = failure_of(counting(tmp_path), mode="streaming", checkpoint_location=str(checkpoint))
    assert_readable(error, "the checkpoint is damaged", f"in the checkpoint file://{checkpoint}")


def test_the_text_of_java_is_at_the_level_debug(caplog):
    def build(pipeline):
        pipeline | beam.Create(range(3)) | beam.Map(lambda x: os._exit(3))

    caplog.set_level(logging.INFO, "penstock_spark")
    failure_of(build)
    assert "org.apache" not in caplog.text
    caplog.set_level(logging.DEBUG, "penstock_spark")
    failure_of(build)
    assert "org.apache.spark.SparkException" in caplog.text


@pytest.mark.parametrize(
    "state",
    [
        "before",
        # A Java that goes in the middle is always killed by tests/spark/test_interrupted_runs.py.
        pytest.param("batch", marks=pytest.mark.soak),
        pytest.param("streaming", marks=pytest.mark.soak),
    ],
)
def test_a_java_that_is_gone_is_named(tmp_path, state):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            f"""
            import os, signal, sys, threading, time
            import penstock as beam
            from penstock_spark.session.session import SessionOptions, session_for
            from penstock.options.pipeline_options import PipelineOptions

            spark = session_for(SessionOptions(master="local[2]", fast_start=True))
            number = int(spark._jvm.java.lang.ProcessHandle.current().pid())

            def kill():
                os.kill(number, signal.SIGKILL)

            def waits(element):
                time.sleep(30)

            state = {state!r}
            if state == "before":
                kill()
            else:
                threading.Timer(6, kill).start()
            options = PipelineOptions([], mode="streaming" if state == "streaming" else "batch", spark=spark)
            pipeline = beam.Pipeline(options=options)
            pipeline | "Create" >> beam.Create([1]) | "Waits" >> beam.Map(waits)
            try:
                pipeline.run().wait_until_finish()
            except Exception as error:
                print("ERROR", error, flush=True)
            os._exit(0)
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=240, check=False
    )
    error = done.stdout.partition("ERROR ")[2]
    assert "Spark's Java process has died, killed by SIGKILL" in error, done.stdout + done.stderr
    assert "'Waits' (program.py:" in error
    assert "hint: " in error
    assert "py4j" not in error
    assert "java." not in error
