"""The page in a browser: what it draws of a snapshot, and that a label is never more than text."""

from __future__ import annotations

import html
import re

import pytest

from penstock_spark.live.server import LiveServer, Look
from penstock_spark.live.snapshot import RunSnapshot
from tests.live.live_pictures import as_of_now, browser, run_browser
from tests.live.sample import HOSTILE, SUM, batch, hostile, stream

pytestmark = pytest.mark.skipif(browser() is None, reason="there is no Chromium on this machine")


def shown(now: RunSnapshot | None, look: Look | None = None) -> str:
    """The document after the page has drawn a snapshot, without its script."""
    server = LiveServer(look or (lambda: now), 0)
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
    assert dom.count("<rect", dom.index('id="steps"')) == 11
    assert "48.6 k → 48.6 k · 412/s" in dom
    assert "708 of them with the tag rejected" in dom
    assert ">composites</button>" in dom


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
