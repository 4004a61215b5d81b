"""What Beam's objects become in penstock's terms, without Spark."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

pytest.importorskip("apache_beam")
import apache_beam as beam
from apache_beam import pipeline
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions as BeamsOptions
from apache_beam.options.pipeline_options import S3Options
from apache_beam.options.value_provider import RuntimeValueProvider
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms import trigger as beams_trigger
from apache_beam.transforms import window as beams_window
from apache_beam.typehints.decorators import TypeCheckError
from apache_beam.utils import windowed_value as beams_windowed_value
from apache_beam.utils.sharded_key import ShardedKey

from penstock.coders.deterministic import decode_key, encode_keys
from penstock.elements.bounded_window import GlobalWindow, IntervalWindow, TimestampedValue
from penstock.elements.tagged_output import TaggedOutput
from penstock.error import UnsupportedByRunner
from penstock.functions.dofn import FilterDoFn, FlatMapDoFn, MapDoFn, MapTupleDoFn
from penstock.functions.signature import bind, signature_of
from penstock.graph import show
from penstock.io.files.shards import Shards
from penstock.io.formats.text_sink import TextFileSink
from penstock.io.formats.text_source import TextSource
from penstock.machines.cells import cell_of
from penstock.options.spark import SparkOptions
from penstock.utils.timestamp import Timestamp
from penstock.windows.output_times import TimestampCombiner
from penstock.windows.time_domain import TimeDomain
from penstock.windows.triggers import AfterCount, AfterSynchronizedProcessingTime, AfterWatermark, Repeatedly
from penstock.windows.window_fn import FixedWindows, Sessions, SlidingWindows
from penstock_spark.beam import BeamRunner, version
from penstock_spark.beam.coders import register_beam_coders
from penstock_spark.beam.combining import combine_fn_of
from penstock_spark.beam.dofns import DoFnAdapter, dofn_of
from penstock_spark.beam.graph_of import graph_of
from penstock_spark.beam.options import options_of, use_options, workers_options
from penstock_spark.beam.quick_times import make_whole_seconds_quickly
from penstock_spark.beam.state import SetStateAdapter, state_of
from penstock_spark.beam.values import (
    OUTPUT_KINDS,
    WindowAdapter,
    argument_of,
    beam_window_of,
    output_of,
    pane_of,
    window_of,
)
from penstock_spark.beam.windowing import WindowFnAdapter, trigger_of, windowfn_of, windowing_of
from penstock_spark.worker.outputs import Timed

pytestmark = pytest.mark.filterwarnings("ignore")


class Season(beams_window.BoundedWindow):
    def __init__(self, name: str, end: float) -> None:
        super().__init__(end)
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Season) and (self.name, self.end) == (other.name, other.end)

    def __hash__(self) -> int:
        return hash(self.name)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (beams_window.GlobalWindow(), GlobalWindow()),
        (beams_window.IntervalWindow(1.5, 3), IntervalWindow(1.5, 3)),
        (Season("spring", 90), WindowAdapter(Season("spring", 90))),
    ],
)
def test_windows_go_over_and_back(theirs: Any, ours: Any) -> None:
    assert window_of(theirs) == ours
    assert beam_window_of(ours) == theirs
    assert pickle.loads(pickle.dumps(ours)) == ours
    assert window_of(theirs).end.micros == theirs.end.micros


def test_what_a_dofn_gives_keeps_its_time_its_windows_and_its_tag() -> None:
    stamped = output_of(beam.window.TimestampedValue("a", 2.5))
    assert stamped == TimestampedValue("a", 2.5)
    pane = beams_windowed_value.PaneInfo(True, False, 0, 3, -1)
    windowed = beams_windowed_value.WindowedValue("a", 7, (beams_window.IntervalWindow(0, 10),), pane)
    given = output_of(beam.pvalue.TaggedOutput("late", windowed))
    assert isinstance(given, TaggedOutput)
    assert (given.tag, given.value.value) == ("late", "a")
    assert (given.value.timestamp_micros, given.value.windows) == (7_000_000, (IntervalWindow(0, 10),))
    assert given.value.pane_info == pane_of(pane)
    assert output_of({"plain": 1}) == {"plain": 1}
    assert argument_of(Timestamp(5)) == beam.utils.timestamp.Timestamp(5)


def test_a_time_that_no_window_can_contain_is_refused() -> None:
    outputs = [beams_window.TimestampedValue("a", 5), beams_window.TimestampedValue("b", 10**15)]
    with pytest.raises(ValueError, match="beyond the ends of time"):
        output_of(outputs[1])
    kind = OUTPUT_KINDS[beams_window.TimestampedValue]
    assert isinstance(kind, Timed)
    with pytest.raises(ValueError, match="beyond the ends of time"):
        kind.times_micros(outputs)


@pytest.fixture
def quick_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the workers do; the fixture gives Beam its own function back."""
    monkeypatch.setattr(beam.utils.timestamp.Timestamp, "of", beam.utils.timestamp.Timestamp.of)
    make_whole_seconds_quickly.__wrapped__()


@pytest.mark.usefixtures("quick_times")
def test_quick_times_are_beams_times() -> None:
    beams_time = beam.utils.timestamp.Timestamp
    for seconds in (0, 5, -5, 10**9, 10**15, -(10**15), 2.5, -0.1, True):
        made, usual = beams_time.of(seconds), beams_time(seconds)
        assert made == usual
        assert vars(made) == vars(usual)
        assert (hash(made), repr(made)) == (hash(usual), repr(usual))
        assert pickle.loads(pickle.dumps(made)) == usual
    assert beams_window.TimestampedValue("a", 5).timestamp + 1 == beams_time(6)
    assert beams_time.of(usual) is usual
    with pytest.raises(TypeError, match="Cannot interpret"):
        beams_time.of("5")


def test_a_beam_that_keeps_its_times_otherwise_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    beams_time = beam.utils.timestamp.Timestamp
    before = beams_time.of
    init = beams_time.__init__

    def init_of_another_beam(self: Any, *arguments: Any, **options: Any) -> None:
        init(self, *arguments, **options)
        self._zone = "UTC"

    monkeypatch.setattr(beams_time, "__init__", init_of_another_beam)
    make_whole_seconds_quickly.__wrapped__()
    assert beams_time.of is before


class TimeOfAnotherBeam:
    """A time that keeps its microseconds where Beam 2.77 does not."""

    micros = 7


def test_the_times_of_many_outputs_are_those_of_each() -> None:
    beams_time = beam.utils.timestamp.Timestamp
    times = [
        *(beams_time(seconds) for seconds in (0, 5, -5, 2.5, -2.5, 10**9)),
        *(beams_time(micros=micros) for micros in (1, -1, 1_500_000)),
        *(beams_time(5, 123, precision) for precision in (0, 3, 6)),
        beam.utils.timestamp.MIN_TIMESTAMP,
        beam.utils.timestamp.MAX_TIMESTAMP,
    ]
    outputs = [beams_window.TimestampedValue("a", time) for time in times]
    kind = OUTPUT_KINDS[beams_window.TimestampedValue]
    assert isinstance(kind, Timed)
    assert kind.times_micros(outputs) == [time.micros for time in times]
    assert kind.times_micros([]) == []

    outputs[0].timestamp = TimeOfAnotherBeam()
    assert kind.times_micros(outputs)[:2] == [7, 5_000_000]
    too_exact = beams_window.TimestampedValue("a", beams_time(0, 1, 9))
    with pytest.raises(ValueError, match="precision"):
        kind.times_micros([too_exact])


def test_window_functions_of_beam_are_translated_and_others_are_hosted() -> None:
    assert windowfn_of(beams_window.FixedWindows(60, 5)) == FixedWindows(60, 5)
    assert windowfn_of(beams_window.SlidingWindows(60, 20, 5)) == SlidingWindows(60, 20, 5)
    assert windowfn_of(beams_window.Sessions(30)) == Sessions(30)

    class Own(beams_window.FixedWindows):
        pass

    hosted = windowfn_of(Own(60))
    assert isinstance(hosted, WindowFnAdapter)
    assert hosted.assign(WindowFnAdapter.AssignContext(65)) == [IntervalWindow(60, 120)]


def test_a_hosted_window_function_merges() -> None:
    class Own(beams_window.Sessions):
        pass

    merged: list[Any] = []

    class Context(WindowFnAdapter.MergeContext):
        def merge(self, to_be_merged: Any, merge_result: Any) -> None:
            merged.append((sorted(to_be_merged), merge_result))

    own = windowfn_of(Own(10))
    windows = [IntervalWindow(0, 10), IntervalWindow(5, 15), IntervalWindow(40, 50)]
    assert own.is_merging()
    own.merge(Context(windows))
    assert merged == [(windows[:2], IntervalWindow(0, 15))]


def test_triggers_are_translated_and_unknown_ones_are_refused_by_name() -> None:
    early = beams_trigger.AfterWatermark(early=beams_trigger.AfterCount(2))
    assert trigger_of(early, "") == AfterWatermark(early=AfterCount(2))
    assert trigger_of(beams_trigger.Repeatedly(beams_trigger.AfterCount(2)), "") == Repeatedly(AfterCount(2))
    # Beam's tutorial writes both: something false for no early trigger, and all of no late triggers.
    tutorials = beams_trigger.AfterWatermark(early=False, late=beams_trigger.AfterAll())
    assert trigger_of(tutorials, "") == AfterWatermark(late=AfterCount(1))

    class Own(beams_trigger.AfterCount):
        pass

    with pytest.raises(
        UnsupportedByRunner, match="does not know the trigger Own\n  at step 'Group'\n  hint:"
    ):
        trigger_of(Own(1), "at step 'Group'")


def test_windowings_keep_mode_lateness_and_times_of_results() -> None:
    theirs = beam.transforms.core.Windowing(
        beams_window.FixedWindows(60),
        beams_trigger.Repeatedly(beams_trigger.AfterCount(1)),
        beams_trigger.AccumulationMode.ACCUMULATING,
        beams_window.TimestampCombiner.OUTPUT_AT_LATEST,
        90,
    )
    ours = windowing_of(theirs, "")
    assert ours.accumulation_mode.name == "ACCUMULATING"
    assert ours.timestamp_combiner == TimestampCombiner.OUTPUT_AT_LATEST
    assert ours.allowed_lateness.micros == 90_000_000


def double(value: int) -> int:
    return 2 * value


@pytest.mark.parametrize(
    ("transform", "kind"),
    [
        (beam.Map(double), MapDoFn),
        (beam.Filter(double), FilterDoFn),
        (beam.FlatMap(double), FlatMapDoFn),
        (beam.MapTuple(double), MapTupleDoFn),
    ],
)
def test_short_forms_call_the_users_function_itself(transform: Any, kind: type) -> None:
    made = dofn_of(transform.dofn)
    assert type(made) is kind
    assert made.fn(4) == 8


def test_a_function_that_asks_for_a_window_is_hosted() -> None:
    made = dofn_of(beam.Map(lambda x, window=beam.DoFn.WindowParam: window).dofn)
    assert isinstance(made, DoFnAdapter)
    assert signature_of(made).kinds == {"WindowParam"}


def test_states_and_timers_are_those_that_the_dofn_declares() -> None:
    class Counting(beam.DoFn):
        COUNT = beam.transforms.userstate.CombiningValueStateSpec("count", sum)
        DUE = beam.transforms.userstate.TimerSpec("due", beam.TimeDomain.REAL_TIME)

        def process(self, pair, count=beam.DoFn.StateParam(COUNT), due=beam.DoFn.TimerParam(DUE)):
            yield pair

        @beam.transforms.userstate.on_timer(DUE)
        def fire(self, count=beam.DoFn.StateParam(COUNT)):
            yield count.read()

    found = signature_of(dofn_of(Counting()))
    assert found.is_stateful
    assert [spec.name for spec in found.state_specs] == ["count"]
    [(timer, method)] = found.timers
    assert (timer.name, timer.time_domain, method.name) == ("ts-due", TimeDomain.REAL_TIME, "fire")


@pytest.mark.parametrize(
    ("args", "kwargs", "call"),
    [
        ((3,), {}, "Call(args=(ElementParam, 3, TimestampParam, WindowParam), kwargs=())"),
        ((), {"factor": 3}, "(('factor', 3), ('time', TimestampParam), ('window', WindowParam))"),
        ((), {}, "(('time', TimestampParam), ('window', WindowParam))"),
    ],
)
def test_a_function_of_a_map_tuple_may_ask_for_times_and_have_further_arguments(
    args: Any, kwargs: Any, call: str
) -> None:
    def line(name, points, factor=1, time=beam.DoFn.TimestampParam, window=beam.DoFn.WindowParam):
        return name, points * factor, time, window

    for transform in (beam.MapTuple(line, *args, **kwargs), beam.FlatMapTuple(line, *args, **kwargs)):
        process = signature_of(dofn_of(transform.dofn)).process
        assert call in repr(bind(process, args, kwargs))


def test_an_accumulator_that_was_stored_is_merged_before_it_is_used() -> None:
    smallest = combine_fn_of(beam.combiners.Smallest(2))
    stored = pickle.loads(pickle.dumps(smallest.add_inputs(smallest.create_accumulator(), [5, 3, 9])))
    assert smallest.extract_output(pickle.loads(pickle.dumps(stored))) == [3, 5]
    assert smallest.extract_output(smallest.add_input(stored, 1)) == [1, 3]


def test_values_that_are_created_with_a_time_have_it() -> None:
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create([beam.window.TimestampedValue("a", 5), "b"])
    assert steps_of(pipeline)["Create"].source.values == (TimestampedValue("a", 5), "b")


def test_a_key_that_beam_spreads_over_shards_is_a_key() -> None:
    register_beam_coders()
    keys = [ShardedKey("k", b"1"), ShardedKey("k", b"2"), ShardedKey(("k", 1), b"1")]
    encoded = encode_keys(keys)
    assert len({*encoded}) == 3
    assert list(map(decode_key, encoded)) == keys


def test_a_step_that_beam_has_refused_is_left_out() -> None:
    pipeline = beam.Pipeline()
    numbers = pipeline | beam.Create([1])
    with pytest.raises(TypeCheckError):
        _ = numbers | "Texts" >> beam.Map(str).with_input_types(str)
    with pytest.raises(TypeCheckError):
        _ = numbers | "Groups" >> beam.GroupByKey()
    _ = numbers | "Numbers" >> beam.Map(str)
    assert list(steps_of(pipeline)) == ["Create", "Numbers"]


def test_a_grouping_that_fires_by_the_clock_may_be_followed_by_another() -> None:
    pipeline = beam.Pipeline()
    trigger = beams_trigger.Repeatedly(beams_trigger.AfterProcessingTime(5))
    windows = beam.WindowInto(
        beams_window.FixedWindows(9),
        trigger=trigger,
        accumulation_mode=beams_trigger.AccumulationMode.DISCARDING,
    )
    once = pipeline | beam.Create([("a", 1)]) | windows | beam.CombinePerKey(sum)
    _ = once | "Again" >> beam.CombinePerKey(sum)
    graph = graph_of(pipeline)
    assert graph.edges[-1].windowing.triggerfn == Repeatedly(AfterSynchronizedProcessingTime())


def test_the_graph_of_a_pipeline_has_beams_labels_and_penstocks_primitives() -> None:
    pipeline = beam.Pipeline()
    words = pipeline | "Words" >> beam.Create(["a", "b"])
    _ = words | "Count" >> beam.combiners.Count.PerElement() | "Spread" >> beam.Reshuffle()
    lines = show(graph_of(pipeline)).splitlines()
    assert lines[0].startswith("Words = Read(InlineValues(2 values)) -> #0")
    assert [line.partition(" = ")[0] for line in lines[1:]][-1] == "Spread"
    assert any("CombinePerKey" in line and "Count/" in line for line in lines)


def test_options_of_penstock_stand_beside_those_of_beam() -> None:
    theirs = BeamsOptions(["--shuffle_partitions=3", "--streaming"], mode="streaming")
    ours = options_of(theirs).view_as(SparkOptions)
    assert (ours.shuffle_partitions, ours.mode) == (3, "streaming")


def test_beam_warns_of_options_that_nobody_knows_and_not_of_penstocks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flags = ["--master=local[2]", "--fast_start", "--shufle_partitions=4", "--live_port=0"]
    # Beam says the same of an option only once in a process.
    flags.append(f"--unknown_{random.getrandbits(64):x}")
    beam.Pipeline(runner=BeamRunner(), argv=flags)
    BeamsOptions(flags).get_all_options(retain_unknown_options=True, display_warnings=True)
    warned = [record.getMessage().split()[2].rstrip(".") for record in caplog.records]
    assert warned == [flags[2], flags[4]]


def test_beams_code_in_a_worker_uses_the_options_of_the_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((RuntimeValueProvider, "runtime_options"), (FileSystems, "_pipeline_options")):
        monkeypatch.setattr(owner, name, None)
    theirs = BeamsOptions(["--s3_endpoint_url=http://store", "--unknown=7"], spark=object())
    use_options(workers_options(theirs))
    assert RuntimeValueProvider("greeting", str, "hello").get() == "hello"
    assert FileSystems._pipeline_options.view_as(S3Options).s3_endpoint_url == "http://store"


@pytest.mark.parametrize("found", ["2.60.0", "3.0.0"])
def test_another_version_of_beam_is_refused(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(version, "version", lambda name: found)
    with pytest.raises(
        ImportError, match=rf"2\.77 and later versions of Beam 2, and not of {found}\n  at .*\n  hint:"
    ):
        version.check_version()


def test_a_read_of_pub_sub_and_an_unknown_source_are_refused_by_name() -> None:
    pipeline = beam.Pipeline()
    pubsub = pytest.importorskip("apache_beam.io.gcp.pubsub")
    source = pubsub._PubSubSource(topic="projects/some-project/topics/thing")
    _ = pipeline | "Messages" >> beam.io.Read(source)
    with pytest.raises(
        UnsupportedByRunner, match="the end _PubSubSource\n  at step 'Messages'\n  hint: only Google"
    ):
        graph_of(pipeline)


def steps_of(pipeline: beam.Pipeline, mode: str = "batch") -> dict[str, Any]:
    """The primitive of each step, by label."""
    return {step.label: step.primitive for step in graph_of(pipeline, mode).steps}


def test_plain_local_text_files_are_read_and_written_by_penstocks_own_ends(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("a\nb\n")
    pipeline = beam.Pipeline()
    lines = pipeline | beam.io.ReadFromText(f"{tmp_path}/*.txt", skip_header_lines=1)
    _ = lines | beam.io.WriteToText(f"{tmp_path}/out", ".csv", num_shards=2, header="line")
    steps = steps_of(pipeline)
    assert list(steps) == ["ReadFromText/Read", "WriteToText/Write"]
    assert steps["ReadFromText/Read"].source == TextSource(f"{tmp_path}/*.txt", skip_header_lines=1)
    shards = Shards(f"{tmp_path}/out", ".csv", 2, "-SSSSS-of-NNNNN")
    assert steps["WriteToText/Write"].sink == TextFileSink(shards, header="line")


def test_a_stream_writes_text_as_beam_does(tmp_path: Path) -> None:
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create(["a"]) | beam.io.WriteToText(f"{tmp_path}/out")
    assert "WriteToText/Write" in steps_of(pipeline)
    streamed = steps_of(pipeline, "streaming")
    assert "WriteToText/Write" not in streamed
    assert any(label.startswith("WriteToText/Write/WriteImpl") for label in streamed)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("_hidden.txt", {}),
        ("log.txt.gz", {}),
        ("missing.txt", {"validate": False}),
        ("log.txt", {"coder": beam.coders.BytesCoder()}),
        ("log.txt", {"delimiter": b"|"}),
        ("log.txt", {"strip_trailing_newlines": False}),
        ("log.txt", {"compression_type": beam.io.filesystem.CompressionTypes.GZIP}),
    ],
)
def test_text_that_spark_might_read_otherwise_is_read_by_beams_source(
    tmp_path: Path, name: str, arguments: dict[str, Any]
) -> None:
    if name != "missing.txt":
        (tmp_path / name).write_bytes(b"a\n")
    pipeline = beam.Pipeline()
    _ = pipeline | beam.io.ReadFromText(f"{tmp_path}/{name}", **arguments)
    assert any("SDFBoundedSourceReader" in label for label in steps_of(pipeline))


def test_text_that_a_coder_of_the_users_makes_is_written_by_beam(tmp_path: Path) -> None:
    pipeline = beam.Pipeline()
    lines = pipeline | beam.Create(["a"])
    _ = lines | "Coded" >> beam.io.WriteToText(f"{tmp_path}/a", coder=beam.coders.PickleCoder())
    _ = lines | "Elsewhere" >> beam.io.WriteToText("gs://bucket/a")
    labels = steps_of(pipeline)
    assert not {"Coded/Write", "Elsewhere/Write"} & set(labels)


def test_a_transform_of_plain_values_is_refused_where_it_cannot_give_its_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UnsupportedByRunner, match=r"of plain values(.|\n)*at step (.|\n)*hint: apply the"):
        _ = [1, 2] | beam.Map(str)
    # Beam's own runner appends the results to a list of its process.
    monkeypatch.setattr(pipeline, "create_runner", lambda name: FnApiRunner())
    assert ([1, 2] | beam.Map(str)) == ["1", "2"]


class Locked:
    """Nothing that can be pickled."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        raise TypeError("no pickles of me")


class LockedCoder(beam.coders.Coder):  # type: ignore[misc]
    def encode(self, value: Any) -> Any:
        return b"%d" % value.number if value.number > 0 else "text"

    def decode(self, encoded: bytes) -> Locked:
        return Locked(int(encoded))


@pytest.mark.parametrize(
    ("kind", "write", "expected"),
    [
        ("ReadModifyWriteStateSpec", lambda cell, value: cell.write(value), b"7"),
        ("BagStateSpec", lambda cell, value: cell.add(value), [b"7"]),
        ("SetStateSpec", lambda cell, value: cell.add(value), {b"7": None}),
        ("OrderedListStateSpec", lambda cell, value: cell.add((2, value)), [(2_000_000, b"7")]),
    ],
)
def test_the_coder_of_a_state_of_beams_encodes_what_is_in_the_cell(
    kind: str, write: Any, expected: Any
) -> None:
    theirs = getattr(beam.transforms.userstate, kind)("cell", LockedCoder())
    spec = pickle.loads(cloudpickle.dumps(state_of(theirs)))
    assert type(spec.coder).__qualname__ == "LockedCoder"
    cells: dict[str, Any] = {}
    write(cell_of(spec, cells), Locked(7))
    assert cells == {"cell": expected}
    found = cell_of(spec, cells).read()  # type: ignore[attr-defined]
    value = found if isinstance(found, Locked) else next(iter(found))
    assert (value[1] if isinstance(value, tuple) else value).number == 7
    message = rf"^the coder LockedCoder of {kind}\(cell\) must encode as bytes, and not as str"
    with pytest.raises(TypeError, match=message):
        write(cell_of(spec, cells), Locked(-1))
    assert cells == {"cell": expected}


def test_equal_values_of_a_set_are_one_even_if_a_coder_tells_them_apart() -> None:
    theirs = beam.transforms.userstate.SetStateSpec("cell", beam.coders.PickleCoder())
    text = "".join(["a", "b"])
    cell = SetStateAdapter(cell_of(state_of(theirs), {}))  # type: ignore[arg-type]
    cell.add((text, text))
    cell.add((text, "".join(["a", "b"])))
    assert cell.read() == {("ab", "ab")}


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (beam.Map(lambda number, more: number), "is missing a required argument: 'more'"),
        (beam.Map(lambda number: number, 3), "is given 1 argument too many"),
    ],
)
def test_arguments_that_do_not_fit_a_function_are_refused_before_anything_starts(
    step: Any, what: str
) -> None:
    made = beam.Pipeline()
    _ = made | beam.Create([1]) | "Step" >> step
    with pytest.raises(
        TypeError, match=rf"^the function {what}\n  at step 'Step' \(test_translation.py:\d+\)\n"
    ):
        graph_of(made)
