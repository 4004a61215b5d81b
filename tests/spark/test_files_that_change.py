"""A stream fails when a file that it reads becomes shorter, or goes, before all of it is read, or has a name by which
Spark would read something else; it names the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.options.pipeline_options import PipelineOptions
from penstock.pipeline import Pipeline
from penstock_spark.lowering.batch_writer import BatchWriter
from tests.spark.readable import assert_readable, failure_of

HERE = Path(__file__).name


def then(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    """Changes something after Spark has found the files of a micro-batch, and before it reads them."""
    write = BatchWriter._write

    def changed(self: BatchWriter, *args: Any) -> None:
        change()
        write(self, *args)

    monkeypatch.setattr(BatchWriter, "_write", changed)


def lines(file: Path, count: int) -> Path:
    file.write_text(("a\n" if file.suffix == ".csv" else "") + '{"a": 1}\n' * count)
    return file


READS = {
    "text": ("txt", beam.io.ReadFromText),
    "csv": ("csv", beam.io.ReadFromCsv),
    "json": ("json", lambda path: beam.io.ReadFromJson(path, orient="records", lines=True)),
}


def streamed(read: Any, path: Path, groupings: int = 0) -> Any:
    def build(pipeline: Pipeline) -> None:
        _ = pipeline | "More" >> beam.Create([1])
        read_lines = pipeline | "Read" >> read(str(path)).as_stream(existing_only=True) | beam.Map(str)
        if groupings:
            read_lines = read_lines | beam.WindowInto(beam.window.FixedWindows(60))
        for number in range(groupings):
            read_lines = read_lines | f"Count{number}" >> beam.combiners.Count.PerElement()

    return build


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("text", 0),
        ("csv", 5),
        ("json", 5),
        *(pytest.param(*case, marks=pytest.mark.soak) for case in (("text", 5), ("csv", 0), ("json", 0))),
    ],
)
def test_a_file_that_becomes_shorter_before_it_is_read_is_an_error(
    name: str, left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, read = READS[name]
    lines(tmp_path / f"b 1.{kind}", 100)
    file = lines(tmp_path / f"a 1.{kind}", 1_000)
    then(monkeypatch, lambda: lines(file, left))
    error = failure_of(streamed(read, tmp_path / f"*.{kind}", groupings=2 * (name == "json")))
    assert isinstance(error, OSError)
    assert_readable(error, f"{file} cannot be read: it was truncated", "at step 'Read", f"({HERE}:")


def test_a_file_that_goes_before_it_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines(tmp_path / "b.txt", 10)
    file = lines(tmp_path / "a.txt", 10)
    then(monkeypatch, lambda: file.unlink(missing_ok=True))
    assert_readable(
        failure_of(streamed(beam.io.ReadFromText, tmp_path / "*.txt")), str(file), "at step 'Read"
    )


def test_a_micro_batch_that_is_done_again_misses_a_file_that_has_gone_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines(tmp_path / "b.txt", 10)
    file = lines(tmp_path / "a.txt", 10)
    build = streamed(beam.io.ReadFromText, tmp_path / "*.txt")
    options = {"checkpoint_location": str(tmp_path / "checkpoint")}
    with monkeypatch.context() as patch:
        then(patch, lambda: lines(file, 5))
        assert "it was truncated" in str(failure_of(build, **options))
    file.unlink()
    error = failure_of(build, **options)
    assert_readable(error, f"{file} cannot be read: it was deleted", "at step 'Read")


def test_files_that_grow_or_come_and_those_that_go_when_they_are_read_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = lines(tmp_path / "a.txt", 10)
    for name in ("b.txt", "[c]*{}.txt", "d %20é.txt", "empty.txt"):
        lines(tmp_path / name, 10 * (name != "empty.txt"))
    out: list[str] = []

    def grow() -> None:
        lines(file, 20)
        lines(tmp_path / "c.txt", 1)

    then(monkeypatch, grow)
    check = BatchWriter._write

    def gone_at_once(self: BatchWriter, *args: Any) -> None:
        check(self, *args)
        (tmp_path / "b.txt").unlink(missing_ok=True)
        out.append("written")

    monkeypatch.setattr(BatchWriter, "_write", gone_at_once)
    pipeline = beam.Pipeline(without=["inline_sinks"])
    streamed(beam.io.ReadFromText, tmp_path / "*.txt")(pipeline)
    assert pipeline.run().wait_until_finish() == "DONE"
    assert out
    [told] = {each.getMessage() for each in caplog.records if "is not read again" in each.getMessage()}
    assert told.startswith(f"{file} changed after the stream read it")
    assert f"\n  at step 'Read' ({HERE}:" in told


@pytest.mark.parametrize("name", ["text", "csv", "json"])
def test_a_file_that_spark_would_unpack_in_a_form_of_hadoops_is_refused_before_it_is_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, read = READS[name]
    lines(tmp_path / f"1.{kind}", 10)
    # The frame of a file by the usual program for LZ4: Hadoop takes it for gigabytes, or for nothing.
    later = tmp_path / f"2.{kind}.lz4"
    frame = pa.BufferOutputStream()
    with pa.CompressedOutputStream(frame, "lz4") as stream:
        stream.write(b'{"a": 1}\n' * 10)
    prepare = BatchWriter.prepare
    content = frame.getvalue().to_pybytes()

    def prepared(self: BatchWriter, *args: Any) -> None:
        prepare(self, *args)
        later.write_bytes(content)

    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "prepare", prepared)
        error = failure_of(streamed(read, tmp_path / "*"))
    assert isinstance(error, ValueError)
    assert_readable(
        error, f"Spark would decompress {later} as LZ4", "at step 'Read", "give it another extension"
    )
    if name != "text":  # In a batch, tasks read lines as they are.
        batch = failure_of(lambda pipeline: pipeline | "Read" >> read(str(tmp_path / "*")) | beam.Map(str))
        assert_readable(batch, f"Spark would decompress {later} as LZ4", "at step 'Read")


@pytest.mark.parametrize("name", ["text", "json"])
def test_a_file_that_is_not_the_bzip2_that_its_name_tells_is_not_taken_for_an_empty_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, read = READS[name]
    lines(tmp_path / f"1.{kind}", 10)
    later = tmp_path / f"2.{kind}.bz2"
    prepare = BatchWriter.prepare

    def prepared(self: BatchWriter, *args: Any) -> None:
        prepare(self, *args)
        later.write_text('{"a": 1}\n' * 10)

    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "prepare", prepared)
        error = failure_of(streamed(read, tmp_path / "*"))
    batch = failure_of(lambda pipeline: pipeline | "Read" >> read(str(tmp_path / "*")) | beam.Map(str))
    for each in (error, batch):
        assert isinstance(each, ValueError)
        assert_readable(each, f"{later} is not a complete bzip2 file", "at step 'Read", "another extension")


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_a_file_of_parquet_without_a_byte_is_told(
    mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"")
    read = beam.io.ReadFromParquet(f"{tmp_path}/*.parquet")
    found: list[Any] = []
    with beam.Pipeline(options=PipelineOptions([f"--mode={mode}", "--shuffle_partitions=2"])) as pipeline:
        _ = (
            pipeline
            | "Read" >> (read if mode == "batch" else read.as_stream(existing_only=True))
            | WriteToMemory(found)
        )
    assert found == [{"a": 1}]
    [told] = [each.getMessage() for each in caplog.records if "has no content (0 bytes)" in each.getMessage()]
    assert told.startswith(
        f"{tmp_path}/b.parquet has no content (0 bytes), and is read as a file without records"
    )
    assert f"at step 'Read' ({HERE}:" in told
