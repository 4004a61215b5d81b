"""The views of a run: which are opened, what they cost a run, and that none of them can harm it."""

from __future__ import annotations

import io
import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.options.spark import SparkOptions
from penstock_conformance import command
from penstock_spark.live import views as live_views
from penstock_spark.live.progress import Bar, Lines
from penstock_spark.live.snapshot_files import NAME
from penstock_spark.live.views import Page, SnapshotFile, Watch, views_of
from penstock_spark.process import interrupts, progress
from penstock_spark.runner import SparkRunner
from tests.live.sample import batch, stream


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Seen:
    """A view that notes what it is shown."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.closed = threading.Event()

    def show(self, now: Any) -> None:
        self.states.append(now.state)

    def close(self) -> None:
        self.closed.set()


@pytest.fixture(autouse=True)
def no_pages() -> Iterator[None]:
    yield
    for page in live_views._pages.by_place.values():
        page.server.close()
    live_views._pages.by_place.clear()
    live_views._pages.tree = None


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is told as to a user, and not as in a test."""
    monkeypatch.delenv("PYTEST_VERSION", raising=False)
    monkeypatch.delenv("PENSTOCK_QUIET", raising=False)
    monkeypatch.delenv("TERM", raising=False)


def options(**given: Any) -> SparkOptions:
    return beam.Pipeline(**given).options.view_as(SparkOptions)


@pytest.mark.usefixtures("told")
def test_a_batch_shows_a_bar_on_a_terminal_and_lines_elsewhere_unless_it_is_switched_off() -> None:
    assert isinstance(views_of(options(), True, Terminal()).shown[0], Bar)
    assert isinstance(views_of(options(), True, io.StringIO()).shown[0], Lines)
    assert views_of(options(progress="off"), True, Terminal()).shown == ()
    assert views_of(options(), False, Terminal()).shown == ()


def test_nothing_is_shown_that_nobody_has_asked_for() -> None:
    views = views_of(options(), True, Terminal())
    assert (views.shown, views.url, views.is_watched) == ((), None, False)


def test_a_view_that_is_broken_harms_neither_the_run_nor_other_views() -> None:
    class Broken(Seen):
        def show(self, now: Any) -> None:
            raise BrokenPipeError("the terminal is closed")

    broken, good = Broken(), Seen()
    state = ["RUNNING"]
    watch = Watch(lambda: replace(batch(), state=state[0]), [broken, good], "r")
    while not good.states:
        time.sleep(0.01)
    state[0] = "DONE"
    watch.end()
    assert good.closed.is_set()
    assert good.states[-1] == "DONE"


def test_a_closed_terminal_ends_the_bar_and_not_the_run() -> None:
    out = Terminal()
    out.close()
    good = Seen()
    watch = Watch(lambda: batch(), [Bar(out, 80), good], "r")
    watch.end()
    assert good.states


def test_a_run_that_cannot_be_looked_at_goes_on() -> None:
    def look() -> Any:
        raise ConnectionError("the session has ended")

    seen = Seen()
    Watch(look, [seen], "r").end()
    assert seen.states == []
    assert seen.closed.is_set()


def test_a_run_is_looked_at_twice_a_second_at_most() -> None:
    seen = Seen()
    watch = Watch(lambda: batch(), [seen], "r")
    time.sleep(1.2)
    watch.end()
    assert len(seen.states) <= 4


def test_progress_costs_a_short_run_less_than_five_milliseconds() -> None:
    def run() -> float:
        began = time.perf_counter()
        watch = Watch(lambda: replace(batch(), state="DONE"), [Bar(Terminal(), 80)], "r", 1.0)
        watch.end()
        return time.perf_counter() - began

    assert sorted(run() for _ in range(21))[10] < 0.005


def test_a_page_stays_for_the_next_run_of_a_program_at_the_same_port() -> None:
    first = views_of(options(live_port=0), False)
    port = int(str(first.url).split(":")[2].strip("/"))
    with pytest.raises(ValueError, match="another run of this program shows its live view"):
        views_of(options(live_port=port), False)
    first.close()
    second = views_of(options(live_port=port), False)
    assert second.url == first.url
    assert second.is_watched
    page = second.shown[-1]
    assert isinstance(page, Page)
    page.show(stream(5))
    with urllib.request.urlopen(f"{second.url}snapshot.json", timeout=20) as answer:
        assert json.loads(answer.read())["name"] == "live_scores"


def test_a_tree_on_a_terminal_needs_rich_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_views, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="needs the package rich") as refused:
        views_of(options(live=True), False, Terminal())
    assert "penstock[live]" in str(refused.value)
    # Without a terminal, it needs nothing.
    assert isinstance(views_of(options(live=True), False, io.StringIO()).shown[0], Lines)


def test_two_trees_do_not_share_a_terminal() -> None:
    pytest.importorskip("rich", reason="the tree in the terminal needs the package rich")
    first, second = (views_of(options(live=True), False, Terminal()).shown[0] for _ in range(2))
    assert not isinstance(first, Lines)
    assert isinstance(second, Lines)


def test_the_kept_snapshot_is_replaced_every_two_seconds_at_most_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(live_views.clock, "monotonic_seconds", lambda: now[0])
    written: list[tuple[str, bytes]] = []
    kept = SnapshotFile(lambda name, content: written.append((name, content)))
    running = stream(5)
    for second in range(21):
        now[0] = second / 4
        kept.show(running)
    assert len(written) == 3
    kept.show(replace(running, state="DRAINED"))
    assert [name for name, _ in written] == [NAME] * 4
    assert b'"state":"DRAINED"' in written[-1][1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"progress": "loud"}, "progress is 'loud'"),
        ({"live_port": -1}, "live_port is -1"),
        ({"live_port": 65_536}, "live_port is 65536"),
        ({"live_port": True}, "live_port is True"),
        ({"live_host": "0.0.0.0"}, "live_host is set without a live_port"),
    ],
)
def test_wrong_options_of_views_are_refused(given: dict[str, Any], said: str) -> None:
    [error] = options(**given).validate()
    assert error.startswith(said)
    assert "hint: " in error


@pytest.mark.parametrize("given", [{"live": True}, {"live_port": 0}])
def test_what_starts_no_run_refuses_a_view(given: dict[str, Any]) -> None:
    pipeline = beam.Pipeline(runner=SparkRunner(), **given)
    numbers = pipeline | beam.Create([1])
    with pytest.raises(ValueError, match=r"explain\(\) does not start a run"):
        pipeline.explain()
    with pytest.raises(ValueError, match=r"to_dataframe\(\) does not start a run"):
        beam.io.to_dataframe(numbers)


def test_a_port_that_is_taken_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    views = views_of(options(live_port=0), False)
    port = int(str(views.url).split(":")[2].strip("/"))
    monkeypatch.setattr(
        "penstock_spark.runs.open_session.open_session", lambda *_: pytest.fail("it has started")
    )
    pipeline = beam.Pipeline(runner=SparkRunner(), live_port=port)
    _ = pipeline | beam.Create([1])
    with pytest.raises(ValueError, match=f"port {port}"):
        pipeline.run()


def test_a_run_that_fails_before_it_begins_gives_its_port_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("no Spark today")

    monkeypatch.setattr("penstock_spark.runs.open_session.open_session", refuse)
    pipeline = beam.Pipeline(runner=SparkRunner(), live_port=0)
    _ = pipeline | beam.Create([1]) | beam.Map(print)
    with pytest.raises(RuntimeError, match="no Spark today"):
        pipeline.run()
    [page] = live_views._pages.by_place.values()
    assert not page.is_in_use


def test_the_command_shows_the_kept_snapshot_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = stream(20)
    (tmp_path / NAME).write_text(now.to_json(), encoding="utf-8")
    assert command.main(["live", "--from", str(tmp_path), "--json"]) == 0
    assert capsys.readouterr().out == f"{now.to_json()}\n"
    assert command.main(["live", "--from", str(tmp_path / "nowhere"), "--json"]) == 2
    assert "there is no live.json" in capsys.readouterr().err


def test_the_command_refuses_a_state_of_no_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["state", "somewhere", "--limit", "0"]) == 2
    assert "--limit is 0" in capsys.readouterr().err


@pytest.mark.usefixtures("told")
def test_a_line_takes_the_place_of_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for out, expected in (
        (Terminal(), "\r\x1b[2Kpenstock: draining\n"),
        (io.StringIO(), "penstock: draining\n"),
    ):
        monkeypatch.setattr("sys.stderr", out)
        progress.print_progress("draining")
        assert out.getvalue() == expected
        interrupts.print_line("draining")
        assert out.getvalue() == 2 * expected
