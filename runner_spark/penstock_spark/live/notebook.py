"""A run as a notebook shows it: its drawing, its progress, and its groupings."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from penstock.base.shown import render_facts, table
from penstock.diagrams.graphs import html_of
from penstock_spark.live.elements import StepElements
from penstock_spark.live.formatting import format_count, format_lag, format_moment, format_seconds
from penstock_spark.live.server import page_with
from penstock_spark.live.snapshot import GroupingNow, RunSnapshot

_GROUPING = (
    *("grouping", "watermark", "behind", "held by", "open keys", "open windows"),
    *("early", "on time", "late", "dropped"),
)
_ELEMENTS = ("step", "elements in", "elements out", "in a second", "out a second")


def run_html(now: RunSnapshot, metrics: Mapping[str, str]) -> str:
    """Returns the snapshot of a run and its metrics, by name.

    >>> shown = run_html(RunSnapshot("", "", "batch", "DONE", 0, 2_000_000), {"Count: rows": "3"})
    >>> "<th>state</th><td>DONE</td>" in shown, "<th>Count: rows</th><td>3</td>" in shown
    (True, True)
    """
    facts = {"state": now.state, "mode": now.mode, "time": format_seconds(now.seconds)}
    facts |= {
        name: format_count(count)
        for name, count in (
            ("rows in", now.rows_in),
            ("rows in a second", now.rows_per_second),
            ("rows out", now.rows_out),
        )
        if count is not None
    }
    if now.errors:
        facts["failed"] = "; ".join(f"{error.kind} {error.where}".strip() for error in now.errors)
    groupings = table("Groupings", _GROUPING, map(_row, now.groupings)) if now.groupings else ""
    elements = table("Elements", _ELEMENTS, map(_elements, now.elements)) if now.elements else ""
    return html_of(now.steps) + render_facts("Run", {**facts, **metrics}) + groupings + elements


def page_frame(now: RunSnapshot, height: int, name: str) -> str:
    """Returns the live page as a frame in a notebook, with a snapshot; `name` is the frame's, for later ones.

    >>> page_frame(RunSnapshot("", "", "batch", "DONE", 0, 2_000_000), 300, "penstock-1")[:67]
    '<iframe id="penstock-1" sandbox="allow-scripts allow-popups" style='
    """
    # The sandbox keeps what is in the frame from the notebook around it.
    return (
        f'<iframe id="{escape(name)}" sandbox="allow-scripts allow-popups" '
        f'style="width:100%;height:{int(height)}px;border:0" srcdoc="{escape(page_with(now))}"></iframe>'
    )


def _elements(one: StepElements) -> tuple[str, ...]:
    numbers = (one.elements_in, one.elements_out, one.in_per_second, one.out_per_second)
    return (one.label, *map(format_count, numbers))


def _row(grouping: GroupingNow) -> tuple[str, ...]:
    return (
        grouping.label,
        format_moment(grouping.output_micros),
        format_lag(grouping.event_lag_micros),
        grouping.held_by,
        format_count(grouping.open_keys),
        format_count(grouping.open_windows),
        format_count(grouping.early),
        format_count(grouping.on_time),
        format_count(grouping.late),
        format_count(grouping.dropped),
    )
