"""Bad input: streams and watermarks."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "Streams and watermarks",
    "",
    (
        Row(
            "a stream that is grouped without windows",
            write="""
                ticks = p | beam.io.ReadFromSpark("rate").as_stream()
                ticks | beam.Map(lambda row: ("all", row)) | beam.GroupByKey()
                """,
            see="""
                ValueError: GroupByKey cannot be applied to an unbounded PCollection with global windowing and a default trigger
                  at step 'GroupByKey' (game.py:2)
                  hint: window the input first, e.g. WindowInto(FixedWindows(60)), or give it another trigger
                """,
        ),
        Row(
            "a side input of a stream without windows",
            write="""
                rates = p | "Rates" >> beam.io.ReadFromSpark("rate").as_stream()
                ticks = p | "Ticks" >> beam.io.ReadFromSpark("rate").as_stream()
                ticks | beam.Map(lambda row, rates: row, beam.pvalue.AsList(rates))
                p.run()
                """,
            see="""
                penstock.error.UnsupportedByRunner: its side input, the unbounded collection of 'Rates' in the global window, has no content before 'Rates' ends, which it never does
                  at step 'Map(<lambda at game.py:3>)' (game.py:3)
                  hint: window the side input, e.g. WindowInto(FixedWindows(60)), or give it a trigger such as Repeatedly(AfterCount(1))
                """,
        ),
        Row(
            "a write whose files a query and its side input read",
            write="""
                names = p | beam.Create(["a"]) | beam.io.WriteToText("out")
                ticks = p | "Ticks" >> beam.io.ReadFromSpark("rate").as_stream()
                ticks | beam.Map(lambda row, names: row, beam.pvalue.AsList(names))
                names | "Print" >> beam.Map(print)
                p.run()
                """,
            see="""
                penstock.error.UnsupportedByRunner: what it has written leads to a side input, which a batch computes before the query starts, and to other steps of the query, which would write everything again
                  at step 'WriteToText' (game.py:1)
                  hint: read its results only for the side input, or only in the query
                """,
        ),
        Row(
            "a stream in a batch",
            write="""
                batch = beam.Pipeline(mode="batch")
                batch | beam.io.ReadFromSpark("rate").as_stream()
                batch.run()
                """,
            see="""
                penstock.error.UnsupportedByRunner: batch mode cannot read an unbounded source
                  at step 'ReadFromSpark' (game.py:2)
                  hint: add --available_now to read what is there now, leave out mode='batch' to run the pipeline as a stream, or read a bounded source
                """,
        ),
        Row(
            "a poll in a batch",
            write="""
                from penstock.io.watch import PollResult, Watch

                batch = beam.Pipeline(mode="batch")
                batch | beam.Create(["shop"]) | "Orders" >> Watch(PollResult.complete, poll_interval=60)
                batch.run()
                """,
            see="""
                penstock.error.UnsupportedByRunner: batch mode cannot run a splittable DoFn whose work on an element may never end
                  at step 'Orders/Poll' (game.py:4)
                  hint: leave out mode='batch' to run the pipeline as a stream, or bound the work on each element
                """,
        ),
        Row(
            "a number of seconds as the end of polls",
            write="""
                from penstock.io.watch import PollResult, Watch

                Watch(PollResult.complete, poll_interval=5, termination=60)
                """,
            see="""
                TypeError: termination=60 is not a TerminationCondition
                  at game.py:3
                  hint: pass after_total_of(seconds), or never()
                """,
        ),
        Row(
            "event times without a watermark",
            write="""
                beam.io.ReadFromSpark("kafka", subscribe="goals").as_stream("timestamp")
                """,
            see="""
                ValueError: event_time is given, but no watermark
                  at game.py:1
                  hint: pass watermark=BoundedDisorder(60), EstimationBand(), OrderedPartitions() or your own CustomWatermark; IdleTimeout and Percentiles wrap one of them
                """,
        ),
        Row(
            "a watermark without event times",
            write="""
                from penstock.io.watermarks import BoundedDisorder

                beam.io.ReadFromSpark("kafka", subscribe="goals").as_stream(watermark=BoundedDisorder(60))
                """,
            see="""
                ValueError: a source without event time: BoundedDisorder needs one for each element
                  at game.py:3
                  hint: pass event_time="field" or a function of the element; or leave the watermark out
                """,
        ),
        Row(
            "a watermark that is a number",
            write="""
                beam.io.ReadFromSpark("kafka", subscribe="goals").as_stream("timestamp", 60)
                """,
            see="""
                TypeError: the watermark parameter must be a policy, but is 60
                  at game.py:1
                  hint: pass BoundedDisorder(60), EstimationBand(), OrderedPartitions() or your own CustomWatermark
                """,
        ),
        Row(
            "a field that the source does not have",
            write="""
                from penstock.io.watermarks import BoundedDisorder

                scores = beam.io.ReadFromText("scores/*", validate=False)
                scores.as_stream("at", BoundedDisorder(60))
                """,
            see="""
                ValueError: the elements of text scores/* have no field 'at'
                  at game.py:4
                  hint: make event_time a function of the element
                """,
        ),
        Row(
            "a negative delay",
            write="""
                from penstock.io.watermarks import BoundedDisorder

                BoundedDisorder(-60)
                """,
            see="""
                ValueError: the delay parameter must not be negative, but is -60
                  at game.py:3
                  hint: pass seconds, 0 or more
                """,
        ),
        Row(
            "a string for a choice",
            write="""
                beam.io.ReadFromText("/logs/*.txt").as_stream(existing_only="false")
                """,
            see="""
                TypeError: existing_only must be True or False, but is 'false'
                  at game.py:1
                  hint: write existing_only=True, or leave it out
                """,
        ),
        Row(
            "a stream of a stream",
            write="""
                beam.io.ReadFromSpark("rate").as_stream().as_stream()
                """,
            see="""
                ValueError: stream of spark rate, IngressTime is already a stream
                  at game.py:1
                  hint: apply it without as_stream
                """,
        ),
        Row(
            "a limit of files for a source without files",
            write="""
                beam.io.ReadFromSpark("kafka", subscribe="goals").as_stream(max_files_per_batch=1)
                """,
            see="""
                ValueError: max_files_per_batch limits files, but spark kafka reads none
                  at game.py:1
                  hint: pass the format's own option to ReadFromSpark, such as maxOffsetsPerTrigger for kafka
                """,
        ),
        Row(
            "a folder to watch that is missing",
            write="""
                p | beam.io.ReadFromText("scores/*.txt").as_stream()
                """,
            see="""
                FileNotFoundError: the stream scores/*.txt watches scores, which does not exist
                  at step 'ReadFromText' (game.py:1)
                  hint: check the path, or pass validate=False
                """,
        ),
        Row(
            "a watermark that moves backwards",
            write="""
                from penstock.testing.test_stream import TestStream

                TestStream().advance_watermark_to(60).advance_watermark_to(30)
                """,
            see="""
                AssertionError: the watermark goes from Timestamp(60) to Timestamp(30)
                  at game.py:3
                  hint: advance it strictly
                """,
        ),
        Row(
            "one element that is not in a list",
            write="""
                from penstock.testing.test_stream import TestStream

                TestStream().add_elements(5)
                """,
            see="""
                TypeError: add_elements takes a list of elements, not an int
                  at game.py:3
                  hint: write add_elements([5])
                """,
        ),
        Row(
            "two clocks in one pipeline",
            write="""
                from penstock.testing.test_stream import TestStream

                p | TestStream().add_elements([1])
                p | beam.io.ReadFromSpark("rate").as_stream()
                p.run()
                """,
            see="""
                penstock.error.UnsupportedByRunner: it does not use the same clock as 'TestStream': a TestStream has its own clock, recorded arrival times are another, and every other source uses the machine's
                  at step 'ReadFromSpark' (game.py:4)
                  hint: give all sources recorded arrival times, or none of them
                """,
        ),
        Row(
            "files of a stream that never get a name",
            write="""
                ticks = p | beam.io.ReadFromSpark("rate").as_stream()
                names = ticks | beam.Map(str) | beam.io.WriteToText("out")
                names | beam.Map(print)
                p.run()
                """,
            see="""
                penstock.error.UnsupportedByRunner: To write a GlobalWindow unbounded PCollection, triggering_frequency must be set and be greater than 0: a file gets its name when its window ends, and the global window never ends
                  at step 'WriteToText' (game.py:2)
                  hint: pass triggering_frequency, put WindowInto before the write, or let no step read its results
                """,
        ),
    ),
)
