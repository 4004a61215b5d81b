"""Spellings that mean the same: of EMIT as triggers, of windows, and of joins with the row that is valid."""

from __future__ import annotations

import datetime

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.sql.execution.lowering import trigger_of
from penstock.sql.language.dialect import parse_query
from penstock.transforms.sql import SqlTransform
from penstock.windows.triggers import AfterArrival, AfterProcessingTime, AfterWatermark, Repeatedly
from penstock_spark.supported import check
from tests.sql.book_chapter_8 import NINE
from tests.sql.book_chapter_9 import EURO
from tests.sql.listings import Listing
from tests.sql.playing import played

EACH = Repeatedly(AfterArrival())
MINUTELY = AfterProcessingTime(60)


@pytest.mark.parametrize(
    ("clause", "trigger"),
    [
        ("EMIT CHANGES", EACH),
        ("EMIT STREAM", EACH),
        ("EMIT AFTER WATERMARK", AfterWatermark()),
        ("EMIT STREAM AFTER WATERMARK", AfterWatermark()),
        ("EMIT WHEN WATERMARK PAST window_end", AfterWatermark()),
        ("EMIT FINAL", AfterWatermark()),
        ("EMIT ON WINDOW CLOSE", AfterWatermark()),
        ("EMIT AFTER WATERMARK AND THEN AFTER 0 SECONDS", AfterWatermark(late=AfterArrival())),
        ("EMIT AFTER WATERMARK AND THEN AFTER 1 MINUTE", AfterWatermark(late=MINUTELY)),
        ("EMIT AFTER 1 MINUTE", Repeatedly(MINUTELY)),
        ("EMIT AFTER DELAY INTERVAL '1' MINUTE", Repeatedly(MINUTELY)),
        ("EMIT AFTER ALIGNED DELAY 1 MINUTE", Repeatedly(AfterProcessingTime.aligned_to(60))),
        ("EMIT PERIODIC 1 MINUTE", Repeatedly(AfterProcessingTime.aligned_to(60))),
        (
            "EMIT AFTER DELAY 1 MINUTE AND AFTER WATERMARK AND THEN AFTER 0 SECONDS",
            AfterWatermark(early=MINUTELY, late=AfterArrival()),
        ),
    ],
)
def test_each_emit_clause_is_a_trigger(clause: str, trigger: object) -> None:
    tree = parse_query(f"SELECT a FROM t {clause}")
    assert trigger_of(tree.args["emit"].args["clause"]) == trigger


def table(query: str, tables: object, until: str = "12:10") -> list[tuple[str, ...]]:
    """The rows of a table at a time."""
    return played(Listing("table", f"SELECT TABLE {query}", "", tables, until=until))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("grouped", "in_from"),
    [
        ("TUMBLE(EventTime, INTERVAL '2' MINUTES)", "TUMBLE({}, INTERVAL '2' MINUTES)"),
        (
            "HOP(EventTime, INTERVAL '1' MINUTE, INTERVAL '2' MINUTES)",
            "HOP({}, INTERVAL '1' MINUTE, INTERVAL '2' MINUTES)",
        ),
        (
            "CUMULATE(EventTime, INTERVAL '1' MINUTE, INTERVAL '4' MINUTES)",
            "CUMULATE({}, INTERVAL '1' MINUTE, INTERVAL '4' MINUTES)",
        ),
        ("SESSION(EventTime, INTERVAL '1' MINUTE)", "SESSION({}, INTERVAL '1' MINUTE)"),
    ],
)
def test_windows_in_group_by_are_those_in_from(grouped: str, in_from: str) -> None:
    function = in_from.format("TABLE UserScores, DESCRIPTOR(EventTime)")
    one = table(
        f"WINDOW_START({grouped}), WINDOW_END({grouped}), SUM(Score) FROM UserScores GROUP BY {grouped}", NINE
    )
    other = table(
        f"window_start, window_end, SUM(Score) FROM {function} GROUP BY window_start, window_end", NINE
    )
    assert one == other
    assert len(one) > 1


def test_validity_in_group_by_is_that_in_from() -> None:
    window = "VALIDITY_WINDOW(EventTime)"
    one = table(
        f"MAX(Rate), WINDOW_START({window}), WINDOW_END({window}) FROM YenRates GROUP BY Curr, {window}", EURO
    )
    function = "VALIDITY_WINDOW(TABLE YenRates PARTITION BY Curr, DESCRIPTOR(EventTime))"
    assert one == table(f"Rate, window_start, window_end FROM {function}", EURO)
    assert one == [("114", "12:00", "12:03"), ("116", "12:03", "12:06"), ("119", "12:06", "inf")]


@pytest.mark.parametrize(
    "join",
    [
        "JOIN YenRates FOR SYSTEM_TIME AS OF YenOrders.EventTime ON YenOrders.Curr = YenRates.Curr",
        "ASOF JOIN YenRates ON YenOrders.Curr = YenRates.Curr AND YenRates.EventTime <= YenOrders.EventTime",
    ],
)
def test_joins_with_the_row_that_is_valid(join: str) -> None:
    found = table(f"Amount, Rate, Amount * Rate AS Yen FROM YenOrders {join}", EURO)
    assert found == [("2", "114", "228"), ("3", "119", "357"), ("5", "116", "580")]


TUMBLED = "TUMBLE(TABLE PCOLLECTION, DESCRIPTOR(at), INTERVAL '2' MINUTES)"
WINDOWED = f"SELECT window_end, SUM(points) AS total FROM {TUMBLED} GROUP BY window_start, window_end"


def endless_goals():
    source = beam.io.ReadFromText("/in/*.txt", validate=False).as_stream()
    row = beam.typehints.row_type.RowTypeConstraint.from_fields([("points", int), ("at", datetime.datetime)])
    return beam.Pipeline() | source | beam.Map(lambda line: line).with_output_types(row)


def test_what_is_emitted_once_goes_into_any_sink(tmp_path):
    goals, query = endless_goals(), f"{WINDOWED} EMIT AFTER WATERMARK"
    _ = goals | SqlTransform(query) | beam.io.WriteToText(str(tmp_path / "totals"))
    graph = goals.pipeline.to_graph()
    check(graph, "streaming")
    with pytest.raises(UnsupportedByRunner, match="a sink cannot write retractions"):
        check(graph, "micro_batch")


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT points FROM PCOLLECTION WHERE points > 3", []),
        ("SELECT points, COUNT(*) AS n FROM PCOLLECTION GROUP BY points", ["GROUP BY or DISTINCT (points)"]),
        ("SELECT DISTINCT points FROM PCOLLECTION", ["GROUP BY or DISTINCT (points)"]),
        (f"{WINDOWED} EMIT AFTER WATERMARK", []),
        (f"SELECT DISTINCT points, window_end FROM {TUMBLED} EMIT AFTER WATERMARK", []),
        (f"SELECT DISTINCT window_start FROM {TUMBLED} EMIT AFTER WATERMARK", []),
        (
            f"{WINDOWED} EMIT AFTER WATERMARK AND THEN AFTER 0 SECONDS",
            [
                "GROUP BY or DISTINCT (window_start, window_end) keeps each group forever, for late rows;"
                " leave out AND THEN"
            ],
        ),
        (WINDOWED, ["GROUP BY or DISTINCT (window_start, window_end) keeps each group forever; group by"]),
        (
            "SELECT a.points FROM PCOLLECTION AS a JOIN PCOLLECTION AS b ON a.points = b.points",
            ["a join keeps"],
        ),
        ("SELECT points FROM PCOLLECTION EXCEPT SELECT 3", ["EXCEPT or INTERSECT keeps"]),
        ("SELECT MAX(points) AS most FROM PCOLLECTION", []),
        ("SELECT points FROM PCOLLECTION ORDER BY points LIMIT 3", []),
    ],
)
def test_a_query_over_input_that_does_not_end_says_what_it_keeps(query, kept, caplog):
    goals = endless_goals()
    applied = goals | SqlTransform(query)
    [told] = [
        record.getMessage() for record in caplog.records if "keeps more and more" in record.getMessage()
    ] or [""]
    assert told.count("\n- ") == len(kept)
    for each in kept:
        assert f"\n- {each}" in told
        assert f"\n- {each}" in applied.pipeline.explain()


def test_a_query_over_input_that_ends_keeps_nothing_for_ever(caplog):
    rows = beam.Pipeline() | beam.Create([beam.Row(points=1)])
    _ = rows | SqlTransform("SELECT points, COUNT(*) AS n FROM PCOLLECTION GROUP BY points")
    assert "keeps more and more" not in caplog.text
