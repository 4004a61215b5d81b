"""A window over the column that has the timestamps of a stream does not find the times again."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.io.parquetio import ReadFromParquet
from penstock.io.streaming.stream_sources import REJECTED
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.sql import SqlTransform


class Goal(NamedTuple):
    team: str
    at: datetime.datetime | None
    known: datetime.datetime | None


def labels(source: Any, time: str = "at", rows: str = "TABLE goals") -> set[str]:
    """The last parts of the labels of a query with windows over a stream."""
    query = f"""
        SELECT STREAM window_start, COUNT(*) AS n
        FROM TUMBLE({rows}, DESCRIPTOR({time}), INTERVAL '2' MINUTES) GROUP BY window_start, window_end
        EMIT AFTER WATERMARK
    """
    pipeline = beam.Pipeline()
    _ = {"goals": source(pipeline)} | SqlTransform(query)
    return {step.label.rpartition("/")[2] for step in pipeline.to_graph().steps}


def read(event_time: Any = "at", **arguments: Any) -> Any:
    return (
        ReadFromParquet("s3://goals/*")
        .with_output_types(Goal)
        .as_stream(event_time, BoundedDisorder(60), **arguments)
    )


STAMPS = {"With time", "At time"}


@pytest.mark.parametrize(
    "rows",
    ["TABLE goals", "(SELECT team, known, at FROM goals WHERE team > 'a')"],
)
def test_timestamps_that_a_source_gave_are_not_found_again(rows: str) -> None:
    assert not STAMPS & labels(lambda pipeline: pipeline | read(), rows=rows)


@pytest.mark.parametrize(
    ("source", "time", "rows"),
    [
        (lambda pipeline: pipeline | read(), "known", "TABLE goals"),
        (lambda pipeline: pipeline | read(lambda goal: goal.at), "at", "TABLE goals"),
        (
            lambda pipeline: pipeline | read() | beam.Map(lambda goal: goal).with_output_types(Goal),
            "at",
            "TABLE goals",
        ),
        (
            lambda pipeline: pipeline | read(),
            "later",
            "(SELECT at + INTERVAL '1' MINUTE AS later FROM goals)",
        ),
        (lambda pipeline: pipeline | read(), "at", "(SELECT MAX(at) AS at FROM goals GROUP BY team)"),
    ],
    ids=["another column", "a function", "behind a step", "an expression", "behind a grouping"],
)
def test_other_times_are_found(source: Any, time: str, rows: str) -> None:
    assert labels(source, time, rows) >= STAMPS


def test_rejected_elements_have_no_timestamps_of_a_column() -> None:
    from penstock.sql.transform import stamps_of

    outputs = beam.Pipeline() | read(rejects=True)
    assert stamps_of(outputs.accepted) == "at"
    assert stamps_of(outputs[REJECTED]) is None
