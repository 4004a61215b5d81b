"""Programs that import ``apache_beam``, on Spark: files, keys of the program's own classes, errors, Beam's examples."""

from __future__ import annotations

import glob
import gzip
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("apache_beam")
import apache_beam as beam
import pyarrow as pa
from apache_beam.io import fileio
from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.ml.inference.base import ModelHandler, RunInference
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.options.value_provider import RuntimeValueProvider
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing import test_stream
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec, TimerSpec, on_timer
from apache_beam.transforms.window import FixedWindows, TimestampedValue
from apache_beam.utils.timestamp import Timestamp

from penstock_spark.beam import BeamRunner

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


def on_spark(**options: Any) -> Any:
    return beam.Pipeline(runner=BeamRunner(shuffle_partitions=2, **options))


RECORDS = [{"number": number, "name": str(number)} for number in range(50)]
AVRO = {
    "type": "record",
    "name": "named",
    "fields": [{"name": "number", "type": "int"}, {"name": "name", "type": "string"}],
}
COLUMNS = pa.schema([("number", pa.int64()), ("name", pa.string())])


def test_beams_own_sinks_and_sources_of_files(tmp_path: Path) -> None:
    with on_spark() as p:
        records = p | beam.Create(RECORDS)
        names = records | "Names" >> beam.Map(lambda record: record["name"])
        _ = names | beam.io.WriteToText(str(tmp_path / "text"), num_shards=3)
        _ = names | beam.Map(str.encode) | beam.io.WriteToTFRecord(str(tmp_path / "tf"))
        _ = records | beam.io.WriteToAvro(str(tmp_path / "avro"), AVRO)
        _ = records | beam.io.WriteToParquet(str(tmp_path / "parquet"), COLUMNS)
        naming = fileio.destination_prefix_naming()
        _ = names | fileio.WriteToFiles(
            str(tmp_path / "files"), destination=lambda name: str(len(name)), file_naming=naming
        )
    assert len(glob.glob(f"{tmp_path}/text*")) == 3
    numbers = list(range(50))
    with on_spark() as p:
        found = {
            "text": p | beam.io.ReadFromText(f"{tmp_path}/text*"),
            "tf": p | beam.io.ReadFromTFRecord(f"{tmp_path}/tf*"),
            "avro": p | beam.io.ReadFromAvro(f"{tmp_path}/avro*") | beam.Map(lambda record: record["number"]),
            "parquet": p
            | beam.io.ReadFromParquet(f"{tmp_path}/parquet*")
            | "N" >> beam.Map(lambda r: r["name"]),
            "files": p
            | fileio.MatchFiles(f"{tmp_path}/files/*-of-*")
            | fileio.ReadMatches()
            | beam.FlatMap(lambda file: file.read_utf8().splitlines()),
        }
        for name, values in found.items():
            assert_that(values | f"{name} int" >> beam.Map(int), equal_to(numbers), label=name)


class Player:
    def __init__(self, name: str) -> None:
        self.name = name


class PlayerCoder(beam.coders.Coder):
    def encode(self, value: Player) -> bytes:
        return value.name.encode()

    def decode(self, encoded: bytes) -> Player:
        return Player(encoded.decode())

    def is_deterministic(self) -> bool:
        return True


class Remember(beam.DoFn):
    """Gives how often it has seen a key, at the end of the window."""

    SEEN = ReadModifyWriteStateSpec("seen", beam.coders.VarIntCoder())
    END = TimerSpec("end", beam.TimeDomain.WATERMARK)

    def process(
        self,
        pair: Any,
        window: Any = beam.DoFn.WindowParam,
        seen: Any = beam.DoFn.StateParam(SEEN),
        end: Any = beam.DoFn.TimerParam(END),
    ) -> None:
        Metrics.counter("game", "seen").inc()
        Metrics.distribution("game", "points").update(pair[1])
        seen.write((seen.read() or 0) + 1)
        end.set(window.end)

    @on_timer(END)
    def fire(
        self,
        key: Any = beam.DoFn.KeyParam,
        window: Any = beam.DoFn.WindowParam,
        seen: Any = beam.DoFn.StateParam(SEEN),
    ) -> Any:
        yield key, int(window.start), seen.read()


def test_keys_with_a_coder_state_timers_windows_and_metrics() -> None:
    beam.coders.registry.register_coder(Player, PlayerCoder)
    p = on_spark()
    scores = p | beam.Create([("ann", 1, 5), ("ann", 2, 7), ("bob", 61, 1), ("ann", 62, 2)])
    timed = scores | beam.MapTuple(lambda name, second, points: TimestampedValue((name, points), second))
    windowed = timed | beam.WindowInto(FixedWindows(60))
    players = windowed | "Players" >> beam.MapTuple(lambda name, points: (Player(name), points))
    sums = players | beam.CombinePerKey(sum) | beam.MapTuple(lambda player, total: (player.name, total))
    assert_that(sums, equal_to([("ann", 12), ("bob", 1), ("ann", 2)]), label="sums")
    counts = windowed | beam.ParDo(Remember())
    assert_that(counts, equal_to([("ann", 0, 2), ("bob", 60, 1), ("ann", 60, 1)]), label="counts")
    result = p.run()
    assert result.wait_until_finish() == "DONE"
    found = result.metrics().query(MetricsFilter().with_namespace("game"))
    assert [(one.key.metric.name, one.committed) for one in found["counters"]] == [("seen", 4)]
    [points] = found["distributions"]
    assert (points.committed.sum, points.committed.max, points.key.step) == (15, 7, "ParDo(Remember)")


def line(
    name: str, points: int, window: Any = beam.DoFn.WindowParam, time: Any = beam.DoFn.TimestampParam
) -> str:
    return f"{name}: {points} at {int(time)} since {int(window.start)}"


def test_created_times_functions_of_tuples_that_ask_for_them_and_options_with_values_of_later() -> None:
    greeting = RuntimeValueProvider("greeting", str, "hello")
    with on_spark() as p:
        scores = p | beam.Create([TimestampedValue(("ann", 5), 61), TimestampedValue(("bob", 7), 2)])
        lines = scores | beam.WindowInto(FixedWindows(60)) | beam.MapTuple(line)
        assert_that(lines, equal_to(["ann: 5 at 61 since 60", "bob: 7 at 2 since 0"]), label="lines")
        greeted = lines | beam.Map(lambda text: f"{greeting.get()}, {text[:3]}")
        assert_that(greeted, equal_to(["hello, ann", "hello, bob"]), label="greeted")


class Doubling(ModelHandler):
    def load_model(self) -> Any:
        return lambda value: 2 * value

    def run_inference(self, batch: Any, model: Any, inference_args: Any = None) -> list[Any]:
        return [model(value) for value in batch]


def test_models_are_asked(tmp_path: Path) -> None:
    with on_spark() as p:
        assert_that(p | beam.Create([1, 2, 3]) | RunInference(Doubling()), equal_to([2, 4, 6]))


def test_an_error_names_the_step_and_the_line_of_the_function() -> None:
    p = on_spark()
    _ = p | beam.Create([0]) | "Divide" >> beam.Map(lambda value: 1 / value)
    with pytest.raises(ZeroDivisionError, match=r"while running 'Divide' \(test_beam_programs.py:\d+\)"):
        p.run()


LINES = "\n".join(f"the king and the fool met king lear {number % 9}" for number in range(90))
SCORES = "\n".join(
    f"user{number % 7},team{number % 3},{number % 11},{1447697463000 + number * 60000},2015-11-16 10:11:03"
    for number in range(300)
)
# The example asserts how often it finds two words.
DEBUGGED = f"{LINES}\nFlourish Flourish Flourish stomach"
EXAMPLES = [
    ("wordcount", LINES, "input"),
    ("wordcount_debugging", DEBUGGED, "input"),
    ("cookbook.multiple_output_pardo", LINES, "input"),
    ("cookbook.group_with_coder", "\n".join(f"joe,{points}" for points in range(5)), "input"),
    ("complete.game.user_score", SCORES, "input"),
    ("complete.tfidf", LINES, "uris"),
]


@pytest.mark.parametrize(
    ("name", "text", "flag"),
    [EXAMPLES[0], *(pytest.param(*example, marks=pytest.mark.soak) for example in EXAMPLES[1:])],
    ids=lambda value: value if len(value) < 40 else "",
)
def test_an_example_of_beams_writes_what_it_writes_on_beams_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, flag: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["example"])
    (tmp_path / "input").write_text(text)
    example = import_module(f"apache_beam.examples.{name}")
    written = []
    for kind in (BeamRunner, FnApiRunner):
        folder = tmp_path / kind.__name__
        folder.mkdir()
        flags = [f"--{flag}={tmp_path / 'input'}", f"--output={folder}/part"]
        example.run([*flags, f"--runner={kind.__module__}.{kind.__name__}"])
        written.append(sorted(line for file in os.listdir(folder) for line in _lines(folder / file)))
    assert written[0] == written[1] != []


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.is_file() else []


class Due(beam.DoFn):  # type: ignore[misc]
    """Says when its timers were due."""

    BY_CLOCK = TimerSpec("by clock", TimeDomain.REAL_TIME)
    BY_WATERMARK = TimerSpec("by watermark", TimeDomain.WATERMARK)

    def process(
        self,
        element: Any,
        by_clock: Any = beam.DoFn.TimerParam(BY_CLOCK),
        by_watermark: Any = beam.DoFn.TimerParam(BY_WATERMARK),
    ) -> None:
        by_clock.set(Timestamp(4))
        by_watermark.set(Timestamp(20))

    @on_timer(BY_CLOCK)
    def of_clock(self, at: Any = beam.DoFn.TimestampParam) -> Any:
        yield "clock", float(at)

    @on_timer(BY_WATERMARK)
    def of_watermark(self, at: Any = beam.DoFn.TimestampParam) -> Any:
        yield "watermark", float(at)


@pytest.mark.parametrize("runner", [BundleBasedDirectRunner, BeamRunner])
def test_a_timer_knows_when_it_was_due_as_on_beams_runner(runner: Any) -> None:
    options = PipelineOptions([])
    options.view_as(StandardOptions).streaming = True
    events = test_stream.TestStream().advance_watermark_to(0).advance_processing_time(1)
    events.add_elements([TimestampedValue(("a", 1), 3)])
    events.advance_processing_time(5).advance_watermark_to(25).advance_watermark_to_infinity()
    with beam.Pipeline(runner=runner(), options=options) as pipeline:
        pairs = pipeline | events | beam.Map(lambda pair: pair).with_output_types(tuple[str, int])
        assert_that(pairs | beam.ParDo(Due()), equal_to([("clock", 4.0), ("watermark", 20.0)]))


def test_files_are_found_from_the_programs_folder_wherever_the_workers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lines.gz").write_bytes(gzip.compress(b"a\nb\n", mtime=0))
    # The session has started in another folder.
    monkeypatch.chdir(tmp_path)
    with beam.Pipeline(runner=BeamRunner(shuffle_partitions=1)) as pipeline:
        assert_that(pipeline | beam.io.ReadFromText("lines.gz"), equal_to(["a", "b"]))


def test_user_code_and_sinks_work_in_the_programs_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The session has started in another folder.
    (tmp_path / "factor").write_text("7")
    monkeypatch.chdir(tmp_path)
    with beam.Pipeline(runner=BeamRunner(shuffle_partitions=1)) as pipeline:
        products = pipeline | beam.Create([1, 2]) | beam.Map(lambda n: n * int(Path("factor").read_text()))
        assert_that(products, equal_to([7, 14]))
        _ = products | beam.Map(str) | beam.Map(str.encode) | beam.io.WriteToTFRecord("products")
    [written] = tmp_path.glob("products-*")
    assert written.read_bytes()
    with beam.Pipeline(runner=BeamRunner(shuffle_partitions=1)) as pipeline:
        assert_that(pipeline | beam.io.ReadFromTFRecord(written.name), equal_to([b"7", b"14"]))
