"""Small pipelines by name, each made for the work of one pass; `test_passes` writes down the result."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql.types import ArrayType, DoubleType, LongType, StringType, StructField, StructType

import penstock as beam
from penstock import field
from penstock.graph import DriverList
from penstock.io import ReadFromParquet, WriteToParquet
from penstock.io.parquetio import ParquetSource
from penstock.io.query_source import QuerySource, QueryTable, RowsOfStep
from penstock.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from penstock.io.sink_transforms import SinkTransform
from penstock.io.watermarks import BoundedDisorder
from penstock.pvalue import AsIter, AsSingleton
from penstock.relations.changelog import Changelog
from penstock.sql.execution.as_written import ComputeQuery
from penstock.testing.test_stream import TestStream
from penstock.transforms.core import RestrictionProvider
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterDelta, AfterWatermark, Repeatedly

Build = Callable[[beam.Pipeline], None]


def double(x):
    return 2 * x


def plus(x, y):
    return x + y


def pair(x):
    return x, x


def distance(before, now):
    return 1


def several(x, *views):
    yield x


def numbers(p, label="Numbers"):
    return p | label >> beam.Create([1, 2, 3])


def pairs(p, label="Pairs"):
    return p | label >> beam.Create([("a", 1), ("b", 2)])


def triggered(pcoll, trigger, label="Trigger", mode=AccumulationMode.ACCUMULATING_AND_RETRACTING):
    return pcoll | label >> beam.WindowInto(beam.window.FixedWindows(60), trigger, accumulation_mode=mode)


def out(pcoll, label="Out"):
    return pcoll | label >> SinkTransform(DriverList([]))


def unread_steps_without_user_code(p):
    groups = pairs(p) | "Group" >> beam.GroupByKey()
    groups | "Spread" >> beam.Reshuffle()
    numbers(p, "Unread")
    (
        (numbers(p, "A"), numbers(p, "B"))
        | "Both" >> beam.Flatten()
        | beam.WindowInto(beam.window.FixedWindows(60))
    )


def unread_user_code(p):
    pairs(p) | "Group" >> beam.GroupByKey() | "Look" >> beam.Map(double)


def read_as_a_side_input_only(p):
    numbers(p) | "Use" >> beam.Map(plus, AsSingleton(numbers(p, "Side")))


def combine_after_a_group(p):
    out(pairs(p) | "Group" >> beam.GroupByKey() | "Sum" >> beam.CombineValues(sum))


def a_group_with_two_readers(p):
    groups = pairs(p) | "Group" >> beam.GroupByKey()
    out(groups | "Sum" >> beam.CombineValues(sum))
    out(groups | "Look" >> beam.Map(double), "Other")


def a_group_that_is_also_a_side_input(p):
    groups = pairs(p) | "Group" >> beam.GroupByKey()
    groups | "Sum" >> beam.CombineValues(sum)
    numbers(p) | "Use" >> beam.FlatMap(several, AsIter(groups))


def some_other_step_after_a_group(p):
    out(pairs(p) | "Group" >> beam.GroupByKey() | "Look" >> beam.Map(double))


def groups_whose_windows_show_what_they_hold(p):
    looking = triggered(pairs(p), Repeatedly(AfterDelta(1, distance=distance)))
    retracted = looking | "Group" >> beam.GroupByKey() | "Sum" >> beam.CombineValues(sum)
    retracted | "Group again" >> beam.GroupByKey() | "Sum again" >> beam.CombineValues(sum)


def a_wanted_number_of_files(p):
    lines = p | "Lines" >> beam.Create(["a"])
    lines | "Write" >> beam.io.WriteToText("out", num_shards=3)
    out(lines)


def word_count(p):
    words = p | "Lines" >> beam.Create(["to be", "or not"]) | "Split" >> beam.FlatMap(str.split)
    out(words | "Pair" >> beam.Map(pair) | "Count" >> beam.combiners.Count.PerKey() | "Say" >> beam.Map(str))


def a_diamond(p):
    both = (numbers(p) | "Left" >> beam.Map(double), numbers(p, "More") | "Right" >> beam.Map(double))
    both += (both[0] | "Again" >> beam.Map(double),)
    out(both | "Join" >> beam.Flatten() | "Pair" >> beam.Map(pair) | "Group" >> beam.GroupByKey())


def a_side_input_from_elsewhere(p):
    out(
        numbers(p)
        | "Use" >> beam.Map(plus, AsSingleton(numbers(p, "Side") | "Sum" >> beam.CombineGlobally(sum)))
    )


def a_side_input_made_of_the_main_input(p):
    main = numbers(p)
    used = main | "Use" >> beam.Map(
        plus, AsSingleton(main | "Sum" >> beam.CombineGlobally(sum).without_defaults())
    )
    out((main, used) | "Both" >> beam.Flatten())
    out(main, "Main")


def side_inputs_that_other_steps_read(p):
    listed = numbers(p)
    out(listed | "Itself" >> beam.FlatMap(several, AsIter(listed)))
    good, bad = listed | "Split" >> beam.FlatMap(several).with_outputs("bad", main="good")
    used = good | "Use" >> beam.FlatMap(several, AsIter(bad), AsSingleton(numbers(p, "Side")))
    out((used, bad) | "Both" >> beam.Flatten(), "Used")


def several_outputs(p):
    good, bad = numbers(p) | "Split" >> beam.FlatMap(several).with_outputs("bad", main="good")
    out(good | "Pair" >> beam.Map(pair) | "Group" >> beam.GroupByKey(), "Good")
    out(bad, "Bad")


def groups_of_one_level_and_of_the_next(p):
    keyed = numbers(p) | "Pair" >> beam.Map(pair)
    first, second = keyed | "First" >> beam.GroupByKey(), keyed | "Second" >> beam.CombinePerKey(sum)
    out((first, second) | "Both" >> beam.Flatten() | "Third" >> beam.GroupByKey())


def sums_that_spark_does(p):
    pairs(p) | "Spread" >> beam.Reshuffle() | "Sum" >> beam.CombinePerKey(sum)
    pairs(p, "More") | "Spread more" >> beam.Reshuffle() | "Count" >> beam.combiners.Count.PerKey()


def sums_that_python_does(p):
    windows = {"Fixed": beam.window.FixedWindows(60), "Sessions": beam.window.Sessions(60)}
    for name, windowfn in windows.items():
        windowed = (
            pairs(p, f"{name} pairs")
            | f"{name} spread" >> beam.Reshuffle()
            | name >> beam.WindowInto(windowfn)
        )
        windowed | f"{name} sum" >> beam.CombinePerKey(sum)
    floats = p | beam.Create([("a", 0.5)]) | "Spread floats" >> beam.Reshuffle()
    floats | "Sum floats" >> beam.CombinePerKey(sum)
    spread = pairs(p) | "Spread" >> beam.Reshuffle()
    spread | "Most" >> beam.CombinePerKey(max)
    spread | "Sum beside it" >> beam.CombinePerKey(sum)
    pairs(p, "Few") | "Sum a few" >> beam.CombinePerKey(sum)


def groupings_by_the_machine(p):
    spread = pairs(p) | "Spread" >> beam.Reshuffle()
    early = triggered(spread, Repeatedly(AfterCount(2)))
    sums = early | "Sum" >> beam.CombinePerKey(sum)
    out(sums | "Group" >> beam.GroupByKey() | "Log" >> Changelog())
    out(sums | "Log first" >> Changelog() | "Group the log" >> beam.GroupByKey(), "Other")
    late = triggered(p | beam.Create([("a", 1)]) | "Spread more" >> beam.Reshuffle(), None, "No trigger")
    late | "Sum once" >> beam.CombinePerKey(sum) | "Sum again" >> beam.CombinePerKey(sum)


def a_machine_beside_a_group(p):
    spread = pairs(p) | "Spread" >> beam.Reshuffle()
    early = triggered(spread, Repeatedly(AfterCount(2))) | "Early" >> beam.GroupByKey()
    both = (early, spread | "Late" >> beam.GroupByKey()) | "Both" >> beam.Flatten()
    out(both | "Again" >> beam.CombinePerKey(beam.combiners.CountCombineFn()) | "Log" >> Changelog())


def a_reshuffle_and_what_is_after_a_write(p):
    written = out(numbers(p) | "Spread" >> beam.Reshuffle(), "First")
    out(written | "After" >> beam.Map(double), "Second")


def a_stream_of_two_levels(p):
    goals = p | TestStream().add_elements([("blue", 1)], tag="goals").add_elements(["late"], tag="notes")
    sums = goals["goals"] | beam.WindowInto(beam.window.FixedWindows(10)) | beam.CombinePerKey(sum)
    notes = (
        goals["notes"] | "Key" >> beam.Map(pair) | "Fixed" >> beam.WindowInto(beam.window.FixedWindows(10))
    )
    out((sums, notes) | beam.Flatten() | beam.GroupByKey())


def a_stream_that_waits_for_another(p):
    goals = p | TestStream().add_elements([3], tag="goals").add_elements([2], tag="rates")
    rates = goals["rates"] | "Fixed" >> beam.WindowInto(beam.window.FixedWindows(10))
    factor = p | "Factor" >> beam.Create([7])
    out(
        goals["goals"]
        | "Convert"
        >> beam.Map(
            lambda goal, rate, factor: goal * rate * factor,
            beam.pvalue.AsSingleton(rates),
            beam.pvalue.AsSingleton(factor),
        )
    )


def results_that_are_taken_back_and_results_that_are_not(p):
    def sums(name, trigger, lateness=0):
        windows = beam.WindowInto(
            beam.window.FixedWindows(60),
            trigger=trigger,
            accumulation_mode=AccumulationMode.ACCUMULATING_AND_RETRACTING,
            allowed_lateness=lateness,
        )
        out(
            pairs(p, f"{name} pairs") | f"{name} windows" >> windows | name >> beam.CombinePerKey(sum),
            f"{name} sums",
        )

    sums("Once", AfterWatermark())
    sums("Late", AfterWatermark(late=AfterCount(1)), lateness=60)
    sums("Early", AfterWatermark(early=AfterCount(1)))


def names_of_files_of_windows(p):
    lines = p | TestStream().add_elements(["a"])
    names = lines | "Minutes" >> beam.io.WriteToText("/out/a", num_shards=2, triggering_frequency=60)
    out(names | "Read" >> beam.Map(double))
    hours = lines | "Hours" >> beam.WindowInto(beam.window.FixedWindows(3600))
    out(hours | "Write" >> beam.io.WriteToText("/out/b"), "Names")
    # Nobody asks for windows here: files of micro-batches.
    _ = hours | "Plain" >> beam.io.WriteToText("/out/c")


SCORES = StructType(
    [
        *(
            StructField("team", StringType()),
            StructField("points", LongType()),
            StructField("at", LongType()),
        ),
        *(StructField("weight", DoubleType()), StructField("tags", ArrayType(StringType()))),
    ]
)
TOTALS = pa.schema([("team", pa.string()), ("total", pa.int64())])


def scores(p, label="Read"):
    return p | label >> ReadFromParquet("scores.parquet", validate=False, as_rows=True)


def columns_from_a_source_to_a_sink(p):
    total = beam.GroupBy("team").aggregate_field("points", sum, "total")
    scores(p) | beam.Filter(field("points") > 0) | total | WriteToParquet("totals", TOTALS, num_shards=1)


def columns_that_python_goes_on_with(p):
    seen = beam.GroupBy("team", odd=field("points") % 2 == 1).aggregate_field("at", max, "last")
    rows = scores(p) | beam.Select("team", "points", "at") | beam.WithTimestamps("at")
    out(rows | beam.WindowInto(beam.window.FixedWindows(60)) | seen | "Double" >> beam.Map(double))


def columns_that_end(p):
    total = beam.GroupBy("team").aggregate_field("weight", beam.combiners.MeanCombineFn(), "mean")
    out(scores(p) | total)
    out(scores(p, "Whole") | "Keep" >> beam.Filter(field("weight") > field("points")), "Kept")
    out(scores(p, "Nested") | beam.Select("tags"), "Tags")
    out(scores(p, "Opaque") | "Double" >> beam.Map(double), "Doubled")
    twice = scores(p, "Twice")
    out(twice | "First" >> beam.Filter(field("points") > 1), "A")
    out(twice | "Second" >> beam.Filter(field("points") > 2), "B")
    out(scores(p, "Triggered") | "Early" >> beam.WindowInto(beam.window.FixedWindows(60)), "Windows")


def scores_that_keep_coming(p):
    disorder = BoundedDisorder(60)
    return p | "Read" >> ReadFromParquet("scores.parquet", validate=False, as_rows=True).as_stream(
        "at", disorder
    )


def a_stream_of_columns(p):
    total = beam.GroupBy("team").aggregate_field("points", sum, "total")
    scored = scores_that_keep_coming(p) | beam.Filter(field("points") > 0)
    scored | beam.WindowInto(beam.window.FixedWindows(60)) | total | WriteToParquet("totals", TOTALS)


def a_stream_of_columns_that_python_continues_with(p):
    seen = beam.GroupBy("team", odd=field("points") % 2 == 1).aggregate_field("at", max, "last")
    rows = scores_that_keep_coming(p) | beam.Select("team", "points", "at")
    out(rows | beam.WindowInto(beam.window.FixedWindows(60)) | seen | "Double" >> beam.Map(double))


def a_stream_whose_elements_python_sees(p):
    total = beam.GroupBy("team").aggregate_field("points", sum, "total")
    scored = scores_that_keep_coming(p) | beam.Filter(field("points") > 0)
    early = AfterWatermark(early=AfterCount(1))
    out(triggered(scored, early, mode=AccumulationMode.DISCARDING) | total)


def a_fan_out(p):
    out(pairs(p) | "Sum" >> beam.CombinePerKey(sum).with_hot_key_fanout(8))


def a_fan_out_of_all(p):
    out(numbers(p) | "Sum" >> beam.CombineGlobally(sum).with_fanout(8))


def a_fan_out_whose_windows_fire_early(p):
    counted = triggered(pairs(p), Repeatedly(AfterCount(2)), mode=AccumulationMode.DISCARDING)
    out(counted | "Sum" >> beam.CombinePerKey(sum).with_hot_key_fanout(lambda key: 8))


def groupings_of_a_few_values(p):
    """Not combined, combined by what the runner knows, and for a machine."""
    out(pairs(p, "Grouped") | "Group" >> beam.GroupByKey(), "Groups")
    counted = pairs(p, "Counted") | beam.WindowInto(beam.window.FixedWindows(60))
    out(counted | "Count" >> beam.combiners.Count.PerKey(), "Counts")
    out(triggered(pairs(p, "Early"), Repeatedly(AfterCount(2))) | "Max" >> beam.CombinePerKey(max), "Maxima")


def a_marker_for_nothing(p):
    points = scores(p) | beam.Filter(field("points") > 0) | "Points" >> beam.Map(double)
    out(points | "Total" >> beam.CombineGlobally(sum))


def a_side_input_of_a_few_values(p):
    out(scores(p) | "Use" >> beam.Map(plus, AsSingleton(numbers(p))))


def values_that_the_user_sees_first(p):
    out(numbers(p, "For a sink"), "Sink")
    out(numbers(p, "For a map") | "Pair" >> beam.Map(pair) | "Group" >> beam.GroupByKey(), "Groups")


def values_that_the_user_combines(p):
    out(pairs(p) | "Own" >> beam.CombinePerKey(len))


def values_in_windows_of_the_user(p):
    class Own(beam.window.FixedWindows):
        pass

    out(pairs(p) | beam.WindowInto(Own(60)) | "Group" >> beam.GroupByKey())


def values_of_a_class_of_the_user(p):
    class Own(str):
        pass

    out(p | beam.Create([("a", Own("x"))]) | "Group" >> beam.GroupByKey())


def many_values(p):
    out(p | beam.Create([("a", number) for number in range(101)]) | "Group" >> beam.GroupByKey())


class Ranges(RestrictionProvider):
    def initial_restriction(self, element):
        return OffsetRange(0, element)

    def create_tracker(self, restriction):
        return OffsetRestrictionTracker(restriction)

    def split(self, element, restriction):
        yield from restriction.split(2)


RANGES = beam.DoFn.RestrictionParam(Ranges())


class CountUp(beam.DoFn):
    def process(self, element, tracker=RANGES):
        position = tracker.current_restriction().start
        while tracker.try_claim(position):
            yield position
            position += 1


class CountUpInWindows(beam.DoFn):
    def process(self, element, more, tracker=RANGES, window=beam.DoFn.WindowParam):
        yield from CountUp().process(element, tracker)


def work_that_is_divided(p):
    out(numbers(p) | "Count" >> beam.ParDo(CountUp()))


def work_that_is_divided_in_each_window(p):
    out(numbers(p) | "Count" >> beam.ParDo(CountUpInWindows(), AsIter(numbers(p, "More"))))


def work_that_is_divided_in_recorded_time(p):
    stream = TestStream().add_elements([3]).advance_watermark_to_infinity()
    out(p | "Recorded" >> stream | "Count" >> beam.ParDo(CountUp()))


def _totals(rows, label):
    """A query over a table, and over the rows of steps."""
    tables = (
        QueryTable("scores", ParquetSource("scores.parquet")),
        *(QueryTable(f"t{place}", RowsOfStep(each.element_type)) for place, each in enumerate(rows)),
    )
    source = QuerySource("SELECT ...", "SELECT ...", tables, schema="total BIGINT")
    return tuple(rows) | label >> ComputeQuery(source, label, beam.Row)


def a_query_over_rows_of_steps(p):
    made = numbers(p) | "Row" >> beam.Select(points=double)
    shared = numbers(p, "More") | "Pair" >> beam.Map(pair)
    out(shared | "Group" >> beam.GroupByKey(), "Groups")
    out(_totals([made, shared | "Points" >> beam.Select(points=double)], "Query"))


def a_query_over_a_query_and_one_that_is_not_read(p):
    made = numbers(p) | "Row" >> beam.Select(points=double)
    out(_totals([_totals([made], "First")], "Second"))
    _totals([numbers(p, "More") | "Points" >> beam.Select(points=double)], "Unread")


CASES: dict[str, tuple[Build, ...]] = {
    "prune": (unread_steps_without_user_code, unread_user_code, read_as_a_side_input_only),
    "lift_combiners": (
        *(combine_after_a_group, a_group_with_two_readers, a_group_that_is_also_a_side_input),
        some_other_step_after_a_group,
        groups_whose_windows_show_what_they_hold,
    ),
    "one_round": (a_fan_out, a_fan_out_of_all, a_fan_out_whose_windows_fire_early),
    "query_rows": (a_query_over_rows_of_steps, a_query_over_a_query_and_one_that_is_not_read),
    "restrictions": (work_that_is_divided, work_that_is_divided_in_each_window),
    "kept_restrictions": (work_that_is_divided, work_that_is_divided_in_recorded_time),
    "spread_writes": (a_wanted_number_of_files,),
    "record_groupings": (combine_after_a_group, a_group_with_two_readers),
    "columns": (columns_from_a_source_to_a_sink, columns_that_python_goes_on_with, columns_that_end),
    "native_streams": (
        *(a_stream_of_columns, a_stream_of_columns_that_python_continues_with),
        a_stream_whose_elements_python_sees,
    ),
    "driver_rows": (
        *(groupings_of_a_few_values, a_marker_for_nothing, a_side_input_of_a_few_values),
        *(values_that_the_user_sees_first, values_that_the_user_combines, values_in_windows_of_the_user),
        *(values_of_a_class_of_the_user, many_values),
    ),
    "fuse": (
        *(word_count, a_diamond, a_side_input_from_elsewhere, a_side_input_made_of_the_main_input),
        *(several_outputs, a_reshuffle_and_what_is_after_a_write),
    ),
    "side_views": (
        *(word_count, a_side_input_from_elsewhere, a_side_input_made_of_the_main_input),
        side_inputs_that_other_steps_read,
    ),
    "stream_views": (a_stream_that_waits_for_another,),
    "single_panes": (results_that_are_taken_back_and_results_that_are_not,),
    "windowed_writes": (names_of_files_of_windows,),
    "levels": (
        *(word_count, a_diamond, groups_of_one_level_and_of_the_next, a_stream_of_two_levels),
        *(a_stream_that_waits_for_another, side_inputs_that_other_steps_read),
    ),
    "one_operator": (a_stream_of_two_levels,),
    "choose_folds": (sums_that_spark_does, sums_that_python_does, groupings_by_the_machine),
    "choose": (
        *(word_count, a_diamond, a_side_input_from_elsewhere, a_side_input_made_of_the_main_input),
        *(several_outputs, groups_of_one_level_and_of_the_next, a_reshuffle_and_what_is_after_a_write),
        *(sums_that_spark_does, a_machine_beside_a_group),
    ),
}
