"""Pipelines of the small composites: their graphs, the types of their outputs, and what they refuse."""

import re
import warnings

import pytest

from penstock import graph
from penstock.error import UnsupportedByRunner
from penstock.graph import StatefulParDo
from penstock.io.source_transforms import SourceTransform
from penstock.options.pipeline_options import PipelineOptions
from penstock.pipeline import Pipeline
from penstock.transforms import combiners, stats, util
from penstock.transforms.core import Create, DoFn, Map, ParDo, WindowInto
from penstock.transforms.deduplicate import Deduplicate, DeduplicatePerKey
from penstock.transforms.error_handling import CollectingErrorHandler, ErrorHandler
from penstock.transforms.observing import LoggingDoFn
from penstock.transforms.periodicsequence import (
    PeriodicImpulse,
    PeriodicSequence,
    PeriodicSource,
)
from penstock.transforms.window import FixedWindows, GlobalWindow, IntervalWindow, Sessions
from penstock.typehints import typehints
from penstock.typehints.sharded_key_type import ShardedKeyTypeConstraint
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp
from penstock.utils.windowed_value import PANE_INFO_UNKNOWN

INTS, PAIRS, TEXTS = [1, 2], [("a", 1)], ["a"]
FIXED = FixedWindows(10)


def applied(values, transform):
    pipeline = Pipeline()
    return pipeline | "In" >> Create(values) | "It" >> transform


@pytest.mark.parametrize(
    ("values", "make", "expected"),
    [
        (INTS, combiners.Count.Globally, "int"),
        (INTS, combiners.Count.PerElement, "Tuple[<class 'int'>, <class 'int'>]"),
        (PAIRS, combiners.Count.PerKey, "Tuple[<class 'str'>, <class 'int'>]"),
        (INTS, combiners.Mean.Globally, "float"),
        (PAIRS, combiners.Mean.PerKey, "Tuple[<class 'str'>, <class 'float'>]"),
        (PAIRS, lambda: combiners.Top.PerKey(2), "Tuple[<class 'str'>, List[<class 'int'>]]"),
        (PAIRS, lambda: combiners.Top.LargestPerKey(2), "Tuple[<class 'str'>, List[<class 'int'>]]"),
        (
            PAIRS,
            lambda: combiners.Top.SmallestPerKey(2, key=str),
            "Tuple[<class 'str'>, List[<class 'int'>]]",
        ),
        (PAIRS, lambda: combiners.Sample.FixedSizePerKey(2), "Tuple[<class 'str'>, List[<class 'int'>]]"),
        (INTS, lambda: combiners.Sample.Any(2), "int"),
        (INTS, combiners.Latest.Globally, "int"),
        (PAIRS, combiners.Latest.PerKey, "Tuple[<class 'str'>, <class 'int'>]"),
        (INTS, lambda: stats.ApproximateUnique.Globally(20), "int"),
        (PAIRS, lambda: stats.ApproximateUnique.PerKey(error=0.1), "Tuple[<class 'str'>, <class 'int'>]"),
        (INTS, lambda: stats.ApproximateQuantiles.Globally(3), "List[<class 'int'>]"),
        (PAIRS, lambda: stats.ApproximateQuantiles.PerKey(3), "Tuple[<class 'str'>, List[<class 'int'>]]"),
        (
            [("a", (1, 0.5))],
            lambda: stats.ApproximateQuantiles.PerKey(3, weighted=True),
            "Tuple[<class 'str'>, List[Any]]",
        ),
        (PAIRS, util.Keys, "str"),
        (PAIRS, util.Values, "int"),
        (PAIRS, util.KvSwap, "Tuple[<class 'int'>, <class 'str'>]"),
        (INTS, util.Distinct, "int"),
        (INTS, util.RemoveDuplicates, "int"),
        (INTS, lambda: util.WithKeys("k"), "Tuple[<class 'str'>, <class 'int'>]"),
        (INTS, lambda: util.WithKeys(str), "Tuple[<class 'str'>, <class 'int'>]"),
        (INTS, lambda: util.WithKeys(lambda element, more: element, 3), "Tuple[Any, <class 'int'>]"),
        (INTS, util.Reshuffle, "int"),
        (PAIRS, util.ReshufflePerKey, "Tuple[<class 'str'>, <class 'int'>]"),
        (PAIRS, lambda: util.GroupIntoBatches(2), "Tuple[<class 'str'>, Iterable[<class 'int'>]]"),
        (
            PAIRS,
            lambda: util.GroupIntoBatches.WithShardedKey(2),
            "Tuple[ShardedKey[<class 'str'>], Iterable[<class 'int'>]]",
        ),
        (INTS, util.BatchElements, "List[<class 'int'>]"),
        (TEXTS, lambda: util.SortAndBatchElements(1, 2, 3), "List[<class 'str'>]"),
        (INTS, util.Reify.Timestamp, "int"),
        (INTS, util.Reify.Window, f"Tuple[<class 'int'>, {Timestamp}, Any]"),
        (PAIRS, util.Reify.TimestampInValue, "Tuple[<class 'str'>, Any]"),
        (PAIRS, util.Reify.WindowInValue, f"Tuple[<class 'str'>, Tuple[<class 'int'>, {Timestamp}, Any]]"),
        (PAIRS, util.ToString.Kvs, "str"),
        (INTS, util.ToString.Element, "str"),
        (INTS, util.LogElements, "int"),
        (INTS, lambda: util.Tee(Map(str)), "int"),
        (INTS, lambda: util.WaitOn(), "int"),
        (TEXTS, lambda: util.Regex.matches("a"), "str"),
        (TEXTS, lambda: util.Regex.all_matches("a"), "List[<class 'str'>]"),
        (TEXTS, lambda: util.Regex.matches_kv("a", 0), "Tuple[<class 'str'>, <class 'str'>]"),
        (
            TEXTS,
            lambda: util.Regex.find_all("(a)", util.Regex.ALL),
            "List[Tuple[<class 'str'>, <class 'str'>]]",
        ),
        (TEXTS, lambda: util.Regex.replace_first("a", "b"), "str"),
        (TEXTS, lambda: util.Regex.split("a"), "List[<class 'str'>]"),
        (INTS, lambda: Deduplicate(event_time_duration=1), "int"),
        (PAIRS, lambda: DeduplicatePerKey(processing_time_duration=1), "Tuple[<class 'str'>, <class 'int'>]"),
        ([(0, 10, 1)], PeriodicSequence, "Union[<class 'float'>, <class 'int'>]"),
    ],
)
def test_outputs_have_the_types_that_follow_from_the_inputs(values, make, expected):
    found = applied(values, make()).element_type
    assert (found.__name__ if isinstance(found, type) else str(found)) == expected


def test_graphs_are_those_that_the_runner_knows_how_to_run_well():
    pipeline = Pipeline()
    pairs = pipeline | Create(PAIRS)
    _ = pairs | util.Distinct()
    _ = pairs | util.Reshuffle(num_buckets=3)
    _ = pairs | util.ReshufflePerKey()
    _ = {"x": pairs, "y": pairs} | util.CoGroupByKey()
    _ = pairs | util.WaitOn(pairs)
    shown = re.sub(r"<class '(\w+)'>", r"\1", graph.show(pipeline.to_graph()))
    assert shown.splitlines()[1:] == [
        "Distinct/ToPairs = #0 ParDo(pair_with_none) -> #1 Tuple[Tuple[str, int], Any]",
        "Distinct/Group = #1 CombinePerKey(CountCombineFn) -> #2 Tuple[Tuple[str, int], int]",
        "Distinct/Distinct/Keys = #2 ParDo(_first) -> #3 Tuple[str, int]",
        "Reshuffle/SpreadElements = #0 Reshuffle -> #4 Tuple[str, int]",
        "ReshufflePerKey/SpreadElements = #0 Reshuffle -> #5 Tuple[str, int]",
        "CoGroupByKey/Tag[x] = #0 ParDo(with_number) -> #6 Tuple[str, Tuple[int, int]]",
        "CoGroupByKey/Tag[y] = #0 ParDo(with_number) -> #7 Tuple[str, Tuple[int, int]]",
        "CoGroupByKey/Flatten = #6 #7 Flatten -> #8 Tuple[str, Tuple[int, int]]",
        "CoGroupByKey/GroupByKey = #8 GroupByKey -> #9 Tuple[str, Iterable[Tuple[int, int]]]",
        "CoGroupByKey/Collect = #9 ParDo(deal_out) -> #10 Tuple[str, Dict[str, Iterable[int]]]",
        "WaitOn/WaitOn0/FlatMap(_nothing) = #0 ParDo(_nothing) -> #11 Tuple[int, int]",
        "WaitOn/WaitOn0/GroupByKey = #11 GroupByKey -> #12 Tuple[int, Iterable[int]]",
        "WaitOn/Map(_the_element) = #0 +iter#12 ParDo(_the_element) -> #13 Tuple[str, int]",
    ]
    by_name = {step.label: step.primitive for step in pipeline.to_graph().steps}
    assert by_name["Reshuffle/SpreadElements"].partitions == 3
    assert by_name["ReshufflePerKey/SpreadElements"].by_key


def test_labels_do_not_change_from_run_to_run():
    def shown():
        pipeline = Pipeline()
        texts = pipeline | Create(TEXTS)
        for number, transform in enumerate(
            [util.WithKeys(str), util.WithKeys("k"), util.Regex.find_kv("a", 0), util.Regex.split("a")]
        ):
            _ = texts | f"{number}" >> transform
        return graph.show(pipeline.to_graph())

    assert shown() == shown()
    assert not re.search(r"0x|\.py:", shown())


def test_a_join_takes_dicts_tuples_lists_and_nothing_but_refuses_nothing_without_a_pipeline():
    pipeline = Pipeline()
    left, right = pipeline | "L" >> Create(PAIRS), pipeline | "R" >> Create([("a", "x")])
    numbered = {1: left, 2: right} | "Numbers" >> util.CoGroupByKey()
    assert (
        str(numbered.element_type)
        == "Tuple[<class 'str'>, Dict[<class 'int'>, Union[Iterable[<class 'int'>], Iterable[<class 'str'>]]]]"
    )
    for name, inputs in (("tuple", (left, right)), ("list", [left, right]), ("any", iter([left, right]))):
        joined = inputs | name >> util.CoGroupByKey()
        assert (
            str(joined.element_type)
            == "Tuple[<class 'str'>, Tuple[Iterable[<class 'int'>], Iterable[<class 'str'>]]]"
        )
    assert ([] | "None" >> util.CoGroupByKey(pipeline=pipeline)).pipeline is pipeline
    with pytest.raises(ValueError, match="pipeline"):
        _ = [] | util.CoGroupByKey()
    with pytest.raises(ValueError, match="different pipelines"):
        _ = (left, Pipeline() | Create(PAIRS)) | "Two" >> util.CoGroupByKey()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: util.BatchElements(5, 4), "must not be greater than maximum"),
        (lambda: util.BatchElements(target_batch_overhead=2), "between 0 and 1"),
        (lambda: util.BatchElements(target_batch_duration_secs=-1), "target_batch_duration_secs .* positive"),
        (
            lambda: util.BatchElements(target_batch_duration_secs_including_fixed_cost=-1),
            "including_fixed_cost .* positive",
        ),
        (
            lambda: util.BatchElements(target_batch_overhead=0, target_batch_duration_secs=0),
            "At least one of",
        ),
        (lambda: util.BatchElements(bucket_boundaries=[1]), "requires length_fn"),
        (lambda: util.BatchElements(length_fn=len, bucket_boundaries=[2, 1]), "sorted list of positive"),
        (lambda: util.BatchElements(length_fn=len, bucket_boundaries=[]), "sorted list of positive"),
        (lambda: util.SortAndBatchElements(0, 1, 1), "min_batch_size must be >= 1, got 0"),
        (lambda: util.SortAndBatchElements(3, 2, 1), r"max_batch_size \(2\) must be >= min_batch_size \(3\)"),
        (lambda: util.SortAndBatchElements(1, 2, 0), "max_batch_weight must be >= 1, got 0"),
        (lambda: util.GroupIntoBatches(0), "batch_size must be a positive value"),
        (
            lambda: util.GroupIntoBatches.WithShardedKey(2, -1),
            "max_buffering_duration must be a non-negative",
        ),
        (lambda: util.Reshuffle(0), "integer greater than 0"),
        (lambda: util.Reshuffle("many"), "integer greater than 0"),
        (Deduplicate, "Deduplicate requires at least"),
        (DeduplicatePerKey, "DeduplicatePerKey requires at least"),
        (lambda: PeriodicImpulse(5, 4), "pass a start that is before the stop"),
        (lambda: PeriodicImpulse(fire_interval=0), "pass seconds, more than 0"),
        (lambda: PeriodicImpulse(0, 9, 1, data=[(Timestamp(1), "x")]), "not enough"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_at_once(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_batches_wait_for_unbounded_input_in_state_unless_windows_merge():
    ticks = Pipeline() | SourceTransform(PeriodicSource(0, MAX_TIMESTAMP.micros, 10**6))
    batches = util.BatchElements(max_batch_duration_secs=1)
    waiting = ticks | "Fixed" >> WindowInto(FIXED) | "Batch" >> batches
    steps = {step.label: step.primitive for step in waiting.pipeline.to_graph().steps}
    assert isinstance(steps["Batch/Wait"], StatefulParDo)
    with pytest.raises(UnsupportedByRunner, match=r"(?s)windows of the input merge.*leave it out"):
        _ = ticks | "Sessions" >> WindowInto(Sessions(5)) | "It" >> batches
    assert applied(PAIRS, util.BatchElements(max_batch_duration_secs=1)).is_bounded


@pytest.mark.parametrize(
    "make",
    [
        lambda: util.GroupIntoBatches(2, max_buffering_duration_secs=1),
        lambda: util.GroupIntoBatches.WithShardedKey(2, 1),
        lambda: DeduplicatePerKey(event_time_duration=1),
        lambda: Deduplicate(event_time_duration=1),
    ],
)
def test_unbounded_input_needs_state_where_bounded_input_needs_a_group(make):
    pipeline = Pipeline()
    ticks = pipeline | SourceTransform(PeriodicSource(0, MAX_TIMESTAMP.micros, 10**6))
    keyed = ticks | Map(lambda tick: (tick, 1)) | WindowInto(FIXED)
    _ = keyed | "It" >> make()
    assert any(isinstance(step.primitive, StatefulParDo) for step in pipeline.to_graph().steps)
    assert applied(PAIRS, make()).is_bounded


def test_batches_may_not_wait_where_windows_merge():
    pipeline = Pipeline()
    ticks = pipeline | SourceTransform(PeriodicSource(0, MAX_TIMESTAMP.micros, 10**6))
    keyed = ticks | Map(lambda tick: (tick, 1)) | WindowInto(Sessions(5))
    with pytest.raises(UnsupportedByRunner, match="the windows of the input merge"):
        _ = keyed | "It" >> util.GroupIntoBatches(2, max_buffering_duration_secs=1)
    _ = keyed | "Others" >> util.GroupIntoBatches(2)
    assert not any(isinstance(step.primitive, StatefulParDo) for step in pipeline.to_graph().steps)


def test_lines_of_logged_elements_say_what_was_asked_for(capsys, caplog):
    window = IntervalWindow(0, 10)
    arguments = ("x", Timestamp(5), window, PANE_INFO_UNKNOWN)
    assert list(LoggingDoFn("> ").process(*arguments)) == ["x"]
    list(LoggingDoFn("", True, True, None, True).process(*arguments))
    list(LoggingDoFn("", True, True, use_epoch_time=True).process(*arguments))
    list(LoggingDoFn("", True, True).process("x", MIN_TIMESTAMP, GlobalWindow(), PANE_INFO_UNKNOWN))
    plain, full, epoch, endless = capsys.readouterr().out.splitlines()
    assert plain == "> x"
    pane = f", pane_info={PANE_INFO_UNKNOWN!r}"
    times = "window(start=1970-01-01T00:00:00Z, end=1970-01-01T00:00:10Z)"
    assert full == f"x, timestamp='1970-01-01T00:00:05Z', {times}{pane}"
    assert epoch == "x, timestamp=5, window(start=0, end=10)"
    assert endless.startswith("x, timestamp=")
    list(LoggingDoFn(level=40).process(*arguments))
    assert [(record.levelname, record.message) for record in caplog.records] == [("ERROR", "x")]


def test_error_handlers_apply_their_consumer_to_all_errors_and_must_be_closed():
    pipeline = Pipeline()
    bad, worse = pipeline | "Bad" >> Create(INTS), pipeline | "Worse" >> Create(INTS)
    with ErrorHandler("Consume" >> Map(str)) as handler:
        handler.add_error_pcollection(bad)
        with pytest.raises(RuntimeError, match="Unclosed error handler"):
            handler.verify_closed()
        with pytest.raises(RuntimeError, match="until it has been closed"):
            handler.output()
        handler.add_error_pcollection(worse)
    handler.verify_closed()
    assert handler.output().element_type is str
    with CollectingErrorHandler() as collecting:
        collecting.add_error_pcollection(bad)
    with pytest.raises(RuntimeError, match="requires the output to be retrieved"):
        collecting.verify_closed()
    assert collecting.output().element_type is int
    collecting.verify_closed()
    with pytest.raises(KeyError), ErrorHandler(Map(str)) as failed:
        raise KeyError
    with pytest.raises(RuntimeError, match="Unclosed"):
        failed.verify_closed()


def beams_names(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return set(pytest.importorskip(f"apache_beam.transforms.{module}").__all__)


@pytest.mark.parametrize(
    ("module", "left_out"),
    [
        (combiners, set()),
        (stats, set()),
        # These need a secret manager of another cloud.
        (util, {"GroupByEncryptedKey", "Secret", "GcpSecret", "GcpHsmGeneratedSecret"}),
    ],
)
def test_every_name_that_beam_exports_is_here_but_for_those_left_out(module, left_out):
    assert beams_names(module.__name__.rpartition(".")[2]) - set(module.__all__) == left_out


def test_a_composite_of_an_unused_dofn_needs_no_more_than_its_parts():
    class Nothing(DoFn):
        def process(self, element):
            yield from ()

    assert applied(INTS, util.Tee(lambda pcoll: pcoll | ParDo(Nothing()))).is_bounded


@pytest.mark.parametrize("transform", [util.Reshuffle(), util.ReshufflePerKey()])
def test_a_reshuffle_of_an_earlier_beam_is_refused(transform):
    pipeline = Pipeline(options=PipelineOptions(update_compatibility_version="2.64.0"))
    with pytest.raises(RuntimeError, match=r"(?s)before Beam 2\.65\.0.*\n  at .*\n  hint: leave"):
        _ = pipeline | Create(PAIRS) | transform


def test_batches_of_keys_tell_their_types():
    assert (
        util.GroupIntoBatches(2).infer_output_type(typehints.KV[str, int])
        == typehints.KV[str, typehints.Iterable[int]]
    )
    key, values = (
        util.GroupIntoBatches.WithShardedKey(2).infer_output_type(typehints.KV[str, int]).tuple_types
    )
    assert (key, values) == (ShardedKeyTypeConstraint(str), typehints.Iterable[int])
