"""Bad input: windows, triggers and times."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "Windows, triggers and times",
    "",
    (
        Row(
            "windows of no length",
            write="""
                beam.window.FixedWindows(0)
                """,
            see="""
                ValueError: the size parameter must be strictly positive, but is 0
                  at game.py:1
                  hint: pass seconds, at least a microsecond (0.000001)
                """,
        ),
        Row(
            "windows of a string",
            write="""
                beam.window.FixedWindows("60")
                """,
            see="""
                TypeError: the size parameter must be a duration, but is '60'
                  at game.py:1
                  hint: pass seconds as an int, a float or a Duration
                """,
        ),
        Row(
            "windows of something that is not a number",
            write="""
                beam.window.FixedWindows(float("nan"))
                """,
            see="""
                ValueError: the size parameter must be finite, but is nan
                  at game.py:1
                  hint: pass a number of seconds
                """,
        ),
        Row(
            "a period of 0",
            write="""
                beam.window.SlidingWindows(60, 0)
                """,
            see="""
                ValueError: the period parameter must be strictly positive, but is 0
                  at game.py:1
                  hint: pass seconds, at least a microsecond (0.000001)
                """,
        ),
        Row(
            "a negative gap",
            write="""
                beam.window.Sessions(-5)
                """,
            see="""
                ValueError: the gap_size parameter must be strictly positive, but is -5
                  at game.py:1
                  hint: pass seconds, at least a microsecond (0.000001)
                """,
        ),
        Row(
            "a number as windows",
            write="""
                p | beam.Create([1]) | beam.WindowInto(60)
                """,
            see="""
                TypeError: WindowInto takes a WindowFn, not 60
                  at step 'WindowInto(WindowIntoFn)' (game.py:1)
                  hint: e.g. FixedWindows(60)
                """,
        ),
        Row(
            "the class of windows",
            write="""
                p | beam.Create([1]) | beam.WindowInto(beam.window.FixedWindows)
                """,
            see="""
                TypeError: WindowInto takes a WindowFn, not <class 'penstock.windows.window_fn.FixedWindows'>
                  at step 'WindowInto(WindowIntoFn)' (game.py:1)
                  hint: e.g. FixedWindows(60)
                """,
        ),
        Row(
            "a trigger without an accumulation mode",
            write="""
                from penstock.transforms.trigger import AfterCount

                p | beam.Create([1]) | beam.WindowInto(beam.window.FixedWindows(60), trigger=AfterCount(1))
                """,
            see="""
                ValueError: accumulation_mode must be provided for non-trivial triggers
                  at game.py:3
                  hint: pass AccumulationMode.DISCARDING or AccumulationMode.ACCUMULATING
                """,
        ),
        Row(
            "the class of a trigger",
            write="""
                from penstock.transforms.trigger import AccumulationMode, AfterCount

                beam.WindowInto(beam.window.FixedWindows(60), AfterCount, AccumulationMode.DISCARDING)
                """,
            see="""
                TypeError: the trigger must be of type TriggerFn, not <class 'penstock.windows.triggers.AfterCount'>
                  at game.py:3
                  hint: write AfterCount(100)
                """,
        ),
        Row(
            "an unknown accumulation mode",
            write="""
                beam.WindowInto(beam.window.FixedWindows(60), accumulation_mode="discard")
                """,
            see="""
                ValueError: the accumulation mode 'discard' is unknown
                  at game.py:1
                  hint: pass AccumulationMode.DISCARDING or AccumulationMode.ACCUMULATING
                """,
        ),
        Row(
            "an unknown timestamp combiner",
            write="""
                beam.WindowInto(beam.window.FixedWindows(60), timestamp_combiner="earliest")
                """,
            see="""
                ValueError: invalid TimestampCombiner: 'earliest'
                  at game.py:1
                  hint: use a constant such as TimestampCombiner.OUTPUT_AT_EOW
                """,
        ),
        Row(
            "a negative lateness",
            write="""
                beam.WindowInto(beam.window.FixedWindows(60), allowed_lateness=-1)
                """,
            see="""
                ValueError: the allowed lateness is -1 seconds
                  at game.py:1
                  hint: pass 0 or more
                """,
        ),
        Row(
            "a lateness as a string",
            write="""
                beam.WindowInto(beam.window.FixedWindows(60), allowed_lateness="1h")
                """,
            see="""
                TypeError: cannot interpret a str as a Duration
                  at game.py:1
                  hint: pass seconds, as an int or a float
                """,
        ),
        Row(
            "a trigger that has no panes for late data",
            write="""
                from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark

                early = AfterWatermark(early=AfterCount(1))
                minutes = beam.WindowInto(
                    beam.window.FixedWindows(60), early, AccumulationMode.DISCARDING, allowed_lateness=600
                )
                p | beam.Create([("a", 1)]) | minutes | beam.GroupByKey()
                """,
            see="""
                ValueError: Unsafe trigger: `AfterWatermark(early=AfterCount(1))` may lose data. Reason: MAY_FINISH
                  at step 'GroupByKey' (game.py:7)
                  hint: add late=AfterCount(1) to the trigger, or leave allowed_lateness out
                """,
        ),
        Row(
            "a trigger that may lose data",
            write="""
                from penstock.transforms.trigger import AccumulationMode, AfterCount

                once = beam.WindowInto(beam.window.FixedWindows(60), AfterCount(5), AccumulationMode.DISCARDING)
                p | beam.Create([("a", 1)]) | once | beam.GroupByKey()
                """,
            see="""
                ValueError: Unsafe trigger: `AfterCount(5)` may lose data. Reason: MAY_FINISH
                  at step 'GroupByKey' (game.py:4)
                  hint: wrap the trigger in Repeatedly, or set the option allow_unsafe_triggers
                """,
        ),
        Row(
            "a count of 0",
            write="""
                from penstock.transforms.trigger import AfterCount

                AfterCount(0)
                """,
            see="""
                ValueError: the count of AfterCount must be a positive integer, but is 0
                  at game.py:3
                  hint: pass an integer, 1 or more
                """,
        ),
        Row(
            "a percentile in percent",
            write="""
                from penstock.transforms.trigger import AfterWatermarkPercentile

                AfterWatermarkPercentile(95)
                """,
            see="""
                ValueError: the percentile must be more than 0 and at most 1, but is 95
                  at game.py:3
                  hint: write 0.95 for 95 percent
                """,
        ),
        Row(
            "a trigger of no triggers",
            write="""
                from penstock.transforms.trigger import AfterAny

                AfterAny()
                """,
            see="""
                ValueError: AfterAny has no triggers
                  at game.py:3
                  hint: write it like AfterAny(AfterCount(100), AfterProcessingTime(60))
                """,
        ),
        Row(
            "a default value for each window",
            write="""
                p | beam.Create([1]) | beam.WindowInto(beam.window.FixedWindows(60)) | beam.CombineGlobally(sum)
                """,
            see="""
                ValueError: Default values are not yet supported in CombineGlobally() if the output PCollection is not windowed by GlobalWindows
                  at step 'CombineGlobally(sum)' (game.py:1)
                  hint: use CombineGlobally().without_defaults() to emit nothing for an empty window, or CombineGlobally().as_singleton_view() to get the default as a side input
                """,
        ),
        Row(
            "a time that is a string",
            write="""
                beam.window.TimestampedValue("goal", "12:00")
                """,
            see="""
                TypeError: cannot interpret a str as a Timestamp
                  at game.py:1
                  hint: pass seconds, as an int or a float
                """,
        ),
        Row(
            "a time that is not a number",
            write="""
                from penstock.utils.timestamp import Timestamp

                Timestamp(float("nan"))
                """,
            see="""
                ValueError: a time cannot be nan
                  at game.py:3
                  hint: pass a finite number of seconds
                """,
        ),
        Row(
            "microseconds instead of seconds",
            write="""
                beam.window.TimestampedValue("goal", 1_767_225_600_000_000)
                """,
            see="""
                ValueError: the event time of an element is beyond the ends of time
                  at game.py:1
                  hint: pass seconds since 1970, not microseconds or nanoseconds
                """,
        ),
        Row(
            "milliseconds instead of seconds",
            write="""
                from penstock.io.fileio import default_file_naming
                from penstock.transforms.window import FixedWindows, Timestamp

                window = FixedWindows(60).assign(FixedWindows.AssignContext(Timestamp(1_700_000_000_000)))[0]
                default_file_naming("scores")(window, None, 0, 1, "", None)
                """,
            see="""
                OverflowError: Timestamp(1699999999980) is not in the years 1 to 9999, which a date needs
                  at game.py:5
                  hint: times are in seconds since 1970: divide milliseconds by 1,000
                """,
        ),
        Row(
            "the first hour of the calendar, by a clock ahead of UTC, and a small z",
            write="""
                from penstock.utils.timestamp import Timestamp

                print(Timestamp.from_rfc3339("0001-01-01T00:30:00+01:00"), Timestamp.from_rfc3339("2009-02-13T23:31:30z"))
                """,
            see="""
                Timestamp(-62135598600) Timestamp(1234567890)
                """,
        ),
        Row(
            "a date that does not exist",
            write="""
                from penstock.utils.timestamp import Timestamp

                Timestamp.from_rfc3339("2026-02-30T00:00:00Z")
                """,
            see="""
                ValueError: could not parse the RFC 3339 string of 20 characters: it has a different format, or there is no such date
                  at game.py:3
                  hint: write it like 2009-02-13T23:31:30Z
                """,
        ),
        Row(
            "a time without a zone",
            write="""
                import datetime

                from penstock.utils.timestamp import Timestamp

                Timestamp.from_utc_datetime(datetime.datetime(2026, 1, 1))
                """,
            see="""
                ValueError: dt has no timezone info
                  at game.py:5
                  hint: add tzinfo=datetime.timezone.utc if it is in UTC
                """,
        ),
        Row(
            "a sequence without an interval",
            write="""
                from penstock.transforms.periodicsequence import PeriodicImpulse

                p | PeriodicImpulse(fire_interval=0)
                """,
            see="""
                ValueError: the interval of a sequence is 0 seconds
                  at game.py:3
                  hint: pass seconds, more than 0
                """,
        ),
    ),
)
