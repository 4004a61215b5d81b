"""A run tells which files it has read and written, under the names that Beam gives them."""

import pytest

import penstock as beam
from penstock.io.filesystems import FileSystems
from penstock.metrics.execution import MetricsContainer, set_current
from penstock.metrics.metric import Lineage, MetricResults
from penstock.options.pipeline_options import PipelineOptions


def named(*paths):
    """The names that Beam gives to local files."""
    return {f"filesystem:localhost.{path}" for path in paths}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/in/a.txt", "filesystem:localhost./in/a.txt"),
        ("file:///in/*.txt", "filesystem:localhost./in/*.txt"),
        ("in/a.txt", "filesystem:localhost.in/a.txt"),
        ("s3a://bucket/in/a.txt", "s3:bucket.in/a.txt"),
        ("gs://bucket/a", "gcs:bucket.a"),
        ("gs://bucket", "gcs:bucket"),
        ("hdfs://host/in/a", "hdfs:host.in/a"),
    ],
)
def test_files_have_the_names_that_beam_gives_them(path, name):
    container = MetricsContainer("Read")
    set_current(container)
    try:
        FileSystems.report_source_lineage(path)
        FileSystems.report_sink_lineage(path)
    finally:
        set_current(None)
    results = MetricResults(container.snapshot())
    assert Lineage.query(results, Lineage.SOURCE) == Lineage.query(results, Lineage.SINK) == {name}


@pytest.mark.usefixtures("spark")
def test_a_batch_tells_patterns_that_it_reads_files_that_it_finds_and_files_that_it_writes(tmp_path):
    (tmp_path / "a.txt").write_text("1\n2\n")
    (tmp_path / "a.csv").write_text("n\n3\n")
    with beam.Pipeline() as p:
        lines = p | beam.io.ReadFromText(f"{tmp_path}/*.txt")
        found = p | beam.Create([f"{tmp_path}/a*.txt"]) | beam.io.ReadAllFromText()
        rows = p | beam.io.ReadFromCsv(f"{tmp_path}/*.csv") | beam.Map(lambda row: str(row.n))
        _ = (lines, found, rows) | beam.Flatten() | beam.io.WriteToText(f"{tmp_path}/few", num_shards=2)
        _ = lines | "Many" >> beam.io.WriteToText(f"{tmp_path}/many", num_shards=11)
    metrics = p.result.metrics()
    read = Lineage.query(metrics, Lineage.SOURCE)
    assert read == named(f"{tmp_path}/*.txt", f"{tmp_path}/*.csv", f"{tmp_path}/a.txt")
    written = named(
        *(f"{tmp_path}/few-0000{number}-of-00002" for number in range(2)), f"{tmp_path}/many-000*"
    )
    assert Lineage.query(metrics, Lineage.SINK) == written


@pytest.mark.usefixtures("spark")
def test_a_stream_tells_the_pattern_that_it_watches_and_the_prefix_that_it_writes(tmp_path):
    (tmp_path / "a.txt").write_text("1\n")
    pipeline = beam.Pipeline(options=PipelineOptions([]))
    lines = pipeline | beam.io.ReadFromText(f"{tmp_path}/*.txt").as_stream(existing_only=True)
    _ = lines | beam.io.WriteToText(f"{tmp_path}/out/part", ".log")
    result = pipeline.run()
    result.wait_until_finish()
    assert Lineage.query(result.metrics(), Lineage.SOURCE) == named(f"{tmp_path}/*.txt")
    assert Lineage.query(result.metrics(), Lineage.SINK) == named(f"{tmp_path}/out/part*.log")
