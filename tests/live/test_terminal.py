"""The output of a run in a terminal, and where there is none."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock_spark.live.progress import Bar, Lines, render_bar
from penstock_spark.live.snapshot import RunSnapshot, Stages
from penstock_spark.live.views import LINE_SECONDS, View, render_stream_line
from tests.live.sample import BEGAN, SECOND, batch, hostile, stream


def after(seconds: float, state: str = "RUNNING", doing: str = "Sum") -> RunSnapshot:
    stages = Stages(doing, 1, 1, 1, 2, 4, 8, 3.0)
    at = BEGAN + round(seconds * SECOND)
    return RunSnapshot("a", "r", "batch", state, BEGAN, at, rows_in=5, stages=stages)


def test_a_run_of_less_than_a_second_shows_nothing() -> None:
    out = io.StringIO()
    shown = Bar(out, 80)
    shown.show(after(0.9))
    shown.show(after(0.95, "DONE"))
    assert out.getvalue() == ""


def test_a_bar_stays_in_one_line_and_a_last_line_takes_its_place() -> None:
    out = io.StringIO()
    shown = Bar(out, 80)
    for seconds in (1, 2, 3):
        shown.show(after(seconds))
    assert out.getvalue().count("\n") == 0
    shown.show(after(4, "DONE"))
    assert out.getvalue().endswith("\r\x1b[2Kpenstock: done in 4.0 s, 5 rows read\n")


@pytest.mark.parametrize("columns", [0, 1, 20, 24, 25, 26, 40, 80, 200])
@pytest.mark.parametrize("doing", ["Sum", "A/very/long/label" * 20, "\x1b[31mred\r\n"])
def test_a_bar_is_never_wider_than_the_terminal_and_moves_no_cursor(columns: int, doing: str) -> None:
    drawn = render_bar(after(5, doing=doing), columns)
    assert len(drawn) <= columns
    assert drawn.isprintable()


def test_where_there_is_no_terminal_lines_come_ever_more_seldom() -> None:
    out = io.StringIO()
    lines = Lines(out)
    for seconds in range(240):
        lines.show(after(seconds))
    lines.show(after(241, "DONE"))
    told = [line.split(":")[1].strip() for line in out.getvalue().splitlines()]
    assert told == [
        "running for 10.0 s",
        "running for 30.0 s",
        "running for 1 min",
        "running for 2 min",
        "running for 3 min",
        "done in 4 min 1 s, 5 rows read",
    ]


@pytest.mark.parametrize("view", [lambda out: Bar(out, 80), Lines])
def test_a_run_that_ends_while_it_is_looked_at_tells_its_end_once(
    view: Callable[[io.StringIO], View],
) -> None:
    out = io.StringIO()
    shown = view(out)
    shown.show(after(10))
    shown.show(after(11, "DONE"))  # The look in between saw the end already.
    shown.show(after(11, "DONE"))
    assert out.getvalue().count("done in") == 1


def test_a_stream_tells_the_grouping_that_is_furthest_behind() -> None:
    out = io.StringIO()
    lines = Lines(out, render_stream_line, LINE_SECONDS)
    lines.show(stream(60))
    assert "Scores/All/Total at 2026-01-01 10:00:43, 16.0 s behind" in out.getvalue()


def test_the_share_of_a_run_never_passes_one_and_never_shrinks_within_a_part() -> None:
    shares = [Stages("", 1, 1, done, 3, tasks, 8).share for done in range(3) for tasks in range(9)]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    assert Stages().share == 0


@pytest.fixture
def console() -> io.StringIO:
    pytest.importorskip("rich", reason="the tree in the terminal needs the package rich")
    return io.StringIO()


def test_the_tree_shows_composites_watermarks_and_what_holds_them(console: io.StringIO) -> None:
    from rich.console import Console

    from penstock_spark.live.tree import draw_tree

    Console(file=console, width=110).print(draw_tree(stream(60)))
    text = console.getvalue()
    for expected in (
        "Scores",
        "ByTeam",
        "Sum  watermark 2026-01-01",
        "on time",
        "held by the source 'Read/Kafka'",
    ):
        assert expected in text


def test_a_hostile_label_is_text_in_the_tree(console: io.StringIO) -> None:
    from rich.console import Console

    from penstock_spark.live.tree import draw_tree

    now = hostile()
    marked = tuple(replace(each, label="[bold]not bold[/]\x1b[2J") for each in now.groupings)
    Console(file=console, width=110).print(draw_tree(replace(now, groupings=marked)))
    assert "[bold]not bold[" in console.getvalue().replace("\n", "")
    assert "\x1b[2J" not in console.getvalue()


def test_the_tree_of_a_run_that_is_over_stays_and_frees_the_terminal(console: io.StringIO) -> None:
    from penstock_spark.live.tree import LiveTree

    tree = LiveTree(console)
    tree.show(stream(20))
    assert not tree.is_over
    tree.show(replace(stream(20), state="DRAINED"))
    assert tree.is_over
    assert "drained in" in console.getvalue()


def test_a_batch_has_a_tree_too(console: io.StringIO) -> None:
    from rich.console import Console

    from penstock_spark.live.tree import draw_tree

    Console(file=console, width=120).print(draw_tree(batch()))
    assert "━" in console.getvalue()


def test_drawing_takes_a_small_part_of_the_time_between_two_looks() -> None:
    now = after(5)
    began = time.process_time()
    for _ in range(200):
        render_bar(now, 120)
    assert (time.process_time() - began) / 200 < 0.005
