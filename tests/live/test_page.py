"""The page in a browser: what it draws of a snapshot, and that a label is never more than text."""

from __future__ import annotations

import html
import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from penstock_spark.checkpoints.custody.requests import Answer
from penstock_spark.live.history import History, Line
from penstock_spark.live.notebook import page_frame
from penstock_spark.live.server import LiveServer, Look, page_with
from penstock_spark.live.snapshot import RunSnapshot
from tests.live.live_pictures import as_of_now, browser, run_browser
from tests.live.sample import HOSTILE, SUM, batch, historic, hostile, stream

pytestmark = pytest.mark.skipif(browser() is None, reason="there is no Chromium on this machine")


def shown(now: RunSnapshot | None, look: Look | None = None, token: str | None = None) -> str:
    """The document after the page has drawn a snapshot, without its script."""
    server = LiveServer(look or (lambda: now), 0, token=token, send=lambda _: Answer(True, ""))
    try:
        dom = run_browser(server.url, "--dump-dom")
    finally:
        server.close()
    return re.sub(r"<script>.*?</script>", "", dom, count=1, flags=re.DOTALL)


def test_the_page_draws_watermarks_panes_and_late_data_of_a_stream() -> None:
    dom = shown(as_of_now(stream()))
    plot = dom[dom.index('id="plot"') : dom.index('id="legend"')]
    assert plot.count('class="mark"') == 1
    assert plot.count('class="mark other"') == 1
    for timing in ("early", "on-time", "late"):
        assert f"var(--{timing})" in plot
    assert "elements dropped, window" in plot
    assert "held by the source" in dom
    assert "Scores / ByTeam / " in dom
    assert 'id="banner" class="banner" role="status" hidden' in dom
    # The clock of this snapshot is not the machine's, so its day is on the axis.
    assert "2026-01-01" in plot
    assert dom.count("<rect", dom.index('id="steps"')) == 11
    assert "48.6 k → 48.6 k · 412/s" in dom
    assert "708 of them with the tag rejected" in dom
    assert ">composites</button>" in dom


def test_the_page_answers_first_whether_a_stream_keeps_up_and_what_waits() -> None:
    dom = shown(as_of_now(stream()))
    verdict = dom[dom.index('id="verdict"') : dom.index('id="progress"')]
    assert "Catching up" in verdict
    assert "are left to read" in verdict
    sinks = dom[dom.index('id="sinks"') : dom.index('id="batches"')]
    assert "elements <b>1\u202f062</b>" in sinks
    sources = dom[dom.index('id="sources"') : dom.index('id="groupings"')]
    assert "left to read <b>1\u202f890</b>" in sources
    groupings = dom[dom.index('id="groupings"') : dom.index('id="sinks"')]
    assert "keys <b>2.7" in groupings
    assert "shard 1 of 4 has" in groupings
    rates = dom[dom.index('id="rates"') : dom.index('id="figure"')]
    assert "rows a second" in rates
    assert "left to read" in rates


def test_the_page_shows_the_runs_of_the_checkpoint_its_size_and_the_settings_without_secrets() -> None:
    dom = shown(as_of_now(stream()))
    runs = dom[dom.index('id="runs"') : dom.index('id="about"')]
    assert [runs.count(f">{word}<") for word in ("died", "failed", "running")] == [1, 1, 1]
    assert "ValueError at step 'Parse' (scores.py:41)" in runs
    about = dom[dom.index('id="about"') : dom.index("<footer>")]
    assert "1.2 MiB in 214 files" in about
    assert "set, but not shown" in about


def test_a_failed_run_names_its_step_on_the_page_and_in_the_graph() -> None:
    dom = shown(stream(30, failure=ValueError("4111-1111 at step 'Parse' (a.py:3)")))
    assert "Failed: ValueError" in dom
    assert "at step 'Parse' (scores.py:41)" in dom
    assert dom.count("the run failed in this step") == dom.count('class="box failed"') == 1
    assert "4111" not in dom


def test_the_buttons_are_there_only_if_the_server_takes_commands() -> None:
    assert ">Drain</button>" not in shown(as_of_now(stream(5)))
    dom = shown(as_of_now(stream(5)), token="a-token-that-is-long-enough")
    assert ">Drain</button>" in dom
    assert ">Cancel</button>" in dom
    assert "a-token" not in dom


def test_old_data_is_drawn_in_its_own_time_and_its_age_is_not_a_lag() -> None:
    dom = shown(historic())
    plot = dom[dom.index('id="plot"') : dom.index('id="legend"')]
    assert "2013-01-0" in plot
    assert ">last windows</button>" in dom
    assert "event time reached" in dom
    assert "event time lag" not in dom


def test_the_page_in_a_notebook_draws_the_snapshot_that_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "cell.html"
    path.write_text(page_with(stream(20)), encoding="utf-8")
    dom = run_browser(path.as_uri(), "--dump-dom")
    assert ">live_scores<" in dom
    assert "Run the cell again to see it now" in dom
    assert 'id="links" hidden' in dom


def test_the_figures_fill_a_frame_that_gets_its_width_after_its_script(tmp_path: Path) -> None:
    tell = """
        <script>
            const plot = document.getElementById("plot");
            setInterval(() => parent.postMessage(plot.getAttribute("viewBox").split(" ")[2], "*"), 50);
        </script>
        """
    frame = page_frame(stream(20), 150, "penstock-1").replace(
        "&lt;/html&gt;", f"{html.escape(tell)}&lt;/html&gt;"
    )
    # A frame in a sandbox is a process of its own, and so its width may come late; it draws only while it is in view.
    # The document is loaded when its image is: the server never answers, and the document drops the image when the
    # figures of all frames are wide.
    document = """
        <img id="pending" src="{pending}">
        {frames}
        <script>
            const widths = new Map();
            addEventListener("message", event => {{
                widths.set(event.source, Number(event.data));
                document.title = [...widths.values()].join(" ");
                const wide = [...widths.values()].filter(width => width > 600);
                if (wide.length === 5) document.getElementById("pending").src = "";
            }});
        </script>
        """
    path = tmp_path / "notebook.html"
    with socket.create_server(("127.0.0.1", 0)) as server:
        pending = f"http://127.0.0.1:{server.getsockname()[1]}/"
        path.write_text(document.format(pending=pending, frames=frame * 5), encoding="utf-8")
        dom = run_browser(path.as_uri(), "--dump-dom", "--timeout=30000", budget_millis=None)
    title = re.findall("<title>(.*?)</title>", dom)[0]
    assert [int(width) > 600 for width in title.split()] == [True] * 5, title


def test_the_clock_of_recorded_input_has_no_dates() -> None:
    now = stream(60)
    recorded = History((Line(SUM, ((0, None), (2_000_000, 60_000_000))),), (), 0)
    dom = shown(replace(now, clock_micros=2_000_000, history=recorded))
    plot = dom[dom.index('id="plot"') : dom.index('id="legend"')]
    assert "processing time, from the start of the recorded input" in plot
    assert ">00:00:05<" in plot
    assert "1969" not in plot


def test_a_label_in_the_page_is_text_whatever_it_says() -> None:
    dom = shown(hostile())
    title = re.findall(r"<title>(.*?)</title>", dom)[0]
    assert html.unescape(title) == f"{HOSTILE} · running"
    # Text that would be an element is escaped everywhere.
    assert "<script" not in dom
    assert html.escape(HOSTILE, quote=False) in dom
    assert f"3 of them with the tag {html.escape(HOSTILE, quote=False)}" in dom


def test_the_page_of_a_batch_has_a_bar_and_no_figure() -> None:
    dom = shown(as_of_now(batch()))
    assert re.search(r'id="done" style="width: 2[0-9.]+%', dom)
    assert "22 of 64 tasks" in dom
    assert re.search(r'<section id="figure" hidden', dom)
    assert SUM not in dom


def test_the_page_says_so_when_a_run_that_has_not_ended_is_silent() -> None:
    assert "The run has said nothing for" in shown(stream(20))


def test_the_page_keeps_the_last_numbers_of_a_program_that_has_died_and_says_so() -> None:
    asked: list[int] = []

    def look() -> RunSnapshot:
        asked.append(1)
        if len(asked) > 1:
            raise ConnectionError("the answer of a program that is gone")
        return as_of_now(stream(20))

    dom = shown(None, look)
    assert len(asked) > 3
    assert "Nobody answers any more" in dom
    assert "held by the source" in dom
