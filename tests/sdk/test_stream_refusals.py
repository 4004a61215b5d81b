"""What `as_stream` refuses where it is written, with the line of the user's program and a hint."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import penstock as beam
from penstock import graph
from penstock.io import (
    ReadFromCsv,
    ReadFromJson,
    ReadFromParquet,
    ReadFromParquetBatched,
    ReadFromSpark,
    ReadFromText,
    from_dataframe,
)
from penstock.io.custom.bounded import BoundedSource
from penstock.io.external.generate_sequence import SequenceSource
from penstock.io.formats.text_source import TextSource
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.streaming.watermark_policy import Recorded, WatermarkPolicy
from penstock.io.watermarks import (
    BoundedDisorder,
    CustomWatermark,
    EstimationBand,
    IdleTimeout,
    IngressTime,
    OrderedPartitions,
    Percentiles,
)
from penstock.testing.test_stream import RecordedStream, TestStream
from penstock.transforms.periodicsequence import PeriodicSource

CSV = ReadFromCsv("/data/*.csv")
KAFKA = ReadFromSpark("kafka", subscribe="clicks")
LINES = ReadFromText("/logs/*.txt", validate=False)


class Slow(CustomWatermark):
    """A policy of the user's own."""

    def summarize(self, elements):
        return None

    def merge(self, summaries):
        return None

    def advance(self, state, summary, clock):
        return None, None


class Unknown(WatermarkPolicy):
    """A policy that says nothing."""


def first_of(element: Any) -> Any:
    return element[0]


@pytest.mark.parametrize(
    ("build", "error", "text", "hint"),
    [
        # Event times and policies.
        (
            lambda: LINES.as_stream(first_of),
            ValueError,
            "event_time is given, but no watermark",
            r"watermark=BoundedDisorder\(60\), EstimationBand\(\), OrderedPartitions\(\) or your own"
            " CustomWatermark.*IdleTimeout and Percentiles",
        ),
        *(
            (lambda policy=policy: LINES.as_stream(watermark=policy), ValueError, text, "event_time=")
            for policy, text in [
                (BoundedDisorder(60), "a source without event time: BoundedDisorder needs one"),
                (OrderedPartitions(), "a source without event time: OrderedPartitions"),
                (EstimationBand(), "a source without event time: EstimationBand"),
                (Slow(), "a source without event time: Slow"),
                (
                    IdleTimeout(Percentiles(EstimationBand())),
                    r"a source without event time: IdleTimeout\(Percentiles\(EstimationBand\)\)",
                ),
            ]
        ),
        *(
            (
                lambda policy=policy: LINES.as_stream(first_of, policy),
                ValueError,
                "with IngressTime the event time is the arrival time",
                "leave event_time out",
            )
            for policy in (IngressTime(), Percentiles(IngressTime()), IdleTimeout(IngressTime()))
        ),
        (
            lambda: LINES.as_stream(first_of, 60),
            TypeError,
            "must be a policy, but is 60",
            "pass BoundedDisorder",
        ),
        (
            lambda: LINES.as_stream(first_of, BoundedDisorder),
            TypeError,
            "must be a policy, but is <class",
            "pass BoundedDisorder",
        ),
        (
            lambda: LINES.as_stream(first_of, Recorded()),
            TypeError,
            "Recorded does not say",
            "BoundedDisorder",
        ),
        (lambda: LINES.as_stream(first_of, Unknown()), TypeError, "Unknown does not say", "CustomWatermark"),
        # Where times and partitions are.
        (
            lambda: LINES.as_stream(3, BoundedDisorder(60)),
            TypeError,
            "event_time must be the name of a field or a function of the element, but is 3",
            'event_time="time"',
        ),
        (
            lambda: LINES.as_stream(arrival_time=b"at"),
            TypeError,
            "arrival_time must be the name",
            "arrival_time=lambda",
        ),
        (
            lambda: CSV.as_stream("at", OrderedPartitions(), partition=0),
            TypeError,
            "partition must be",
            "partition=",
        ),
        (
            lambda: LINES.as_stream("at", BoundedDisorder(60)),
            ValueError,
            r"the elements of text /logs/\*.txt have no field 'at'",
            "make event_time a function of the element$",
        ),
        (
            lambda: ReadFromParquet("/a", validate=False, columns=["b", "c"]).as_stream(arrival_time="at"),
            ValueError,
            "have no field 'at'",
            "fields are b, c$",
        ),
        (
            lambda: ReadFromCsv("/a", usecols=["b"], filename_column="file").as_stream(arrival_time="at"),
            ValueError,
            "have no field 'at'",
            "fields are b, file$",
        ),
        # Arguments that do not fit together.
        *(
            (
                lambda policy=policy: LINES.as_stream(first_of, policy, partition=first_of),
                ValueError,
                f"partition has no meaning for {type(policy).__name__}",
                "per_partition=True",
            )
            for policy in (BoundedDisorder(60), EstimationBand(), Slow())
        ),
        (
            lambda: LINES.as_stream(partition=first_of),
            ValueError,
            "partition has no meaning for IngressTime",
            "leave it out",
        ),
        *(
            (
                lambda policy=policy: KAFKA.as_stream("timestamp", policy),
                ValueError,
                "would wait for 3 partitions",
                'partition="field"',
            )
            for policy in (
                OrderedPartitions(at_least=3),
                IdleTimeout(BoundedDisorder(60, per_partition=True, at_least=3)),
            )
        ),
        (lambda: LINES.as_stream(tick=5), ValueError, "tick=5 has no meaning", "arrival_time"),
        # Numbers.
        *(
            (
                lambda tick=tick: LINES.as_stream(arrival_time=first_of, tick=tick),
                ValueError,
                "tick",
                "seconds",
            )
            for tick in (0, -1, float("inf"))
        ),
        (lambda: LINES.as_stream(arrival_time=first_of, tick="1 s"), TypeError, "tick", "seconds"),
        *(
            (lambda ahead=ahead: LINES.as_stream(max_ahead=ahead), ValueError, "max_ahead", "seconds")
            for ahead in (-1, float("nan"))
        ),
        (lambda: LINES.as_stream(max_ahead="1 h"), TypeError, "max_ahead", "seconds"),
        (
            lambda: LINES.as_stream(max_files_per_batch=0),
            ValueError,
            "max_files_per_batch must be 1",
            "no limit",
        ),
        (
            lambda: LINES.as_stream(max_bytes_per_batch=-5),
            ValueError,
            "max_bytes_per_batch must be 1",
            "no limit",
        ),
        (lambda: LINES.as_stream(max_bytes_per_batch=1e9), TypeError, "must be an integer", "=100"),
        (lambda: LINES.as_stream(max_files_per_batch=True), TypeError, "must be an integer", "=100"),
        (
            lambda: KAFKA.as_stream(max_files_per_batch=1),
            ValueError,
            "max_files_per_batch limits files, but spark kafka reads none",
            "maxOffsetsPerTrigger",
        ),
        # Sources.
        (
            lambda: ReadFromParquetBatched("/a", validate=False).as_stream(),
            ValueError,
            "tables of records cannot be streamed",
            "use ReadFromParquet,",
        ),
        (
            lambda: ReadFromJson("/a", lines=False).as_stream(),
            ValueError,
            "one list or object each cannot be read as a stream",
            "an object a line",
        ),
        (lambda: ReadFromSpark("JDBC", dbtable="a").as_stream(), ValueError, "the format 'JDBC'", "Kafka"),
        (lambda: ReadFromSpark("orc", ["/a", "/b"]).as_stream(), ValueError, "2 are given", "Flatten"),
        (
            lambda: SourceTransform(graph.InlineValues((1,))).as_stream(),
            ValueError,
            "values of the program",
            "TestStream",
        ),
        (
            lambda: from_dataframe(None).as_stream(),
            ValueError,
            "the DataFrame is not a streaming one",
            "ReadFromSpark",
        ),
        *(
            (
                lambda source=source: SourceTransform(source).as_stream(),
                ValueError,
                "is already a stream",
                "without as_stream",
            )
            for source in (
                RecordedStream(()),
                PeriodicSource(0, 10, 1),
                SequenceSource(0),
                StreamSource(TextSource("/a"), IngressTime()),
            )
        ),
        (lambda: LINES.as_stream().as_stream(), ValueError, "is already a stream", "without as_stream"),
        (
            lambda: SourceTransform(graph.Source()).as_stream(),
            ValueError,
            "the source Source cannot be read as a stream",
            "use ReadFromText, ReadFromCsv, ReadFromJson, ReadFromParquet or ReadFromSpark",
        ),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(
    build: Callable[[], Any], error: type[Exception], text: str, hint: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        build()
    _, where, advice = str(caught.value).split("\n")
    assert where.startswith("  at test_stream_refusals.py:")
    assert re.match(f"  hint: .*{hint}", advice)


def test_transforms_without_a_description_have_no_stream() -> None:
    for transform in (beam.Create([1]), TestStream(), beam.io.Read(BoundedSource())):
        assert not hasattr(transform, "as_stream")
