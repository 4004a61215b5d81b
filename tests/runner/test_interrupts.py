"""Which handlers of signals are in force when, without Spark."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext

import penstock as beam
from penstock_spark.process.interrupts import (
    continuing_command,
    defer_signals,
    interrupts,
    is_interactive,
    keep_handlers,
    report_after_signal,
)
from penstock_spark.runs import execute


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """Python's own, and what was there before in the end."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _handler() -> object:
    return signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("number", "raised", "name"),
    [(signal.SIGINT, KeyboardInterrupt, "Ctrl-C"), (signal.SIGTERM, SystemExit, "SIGTERM")],
)
def test_a_signal_leaves_the_block_and_says_what_became_of_it(
    number: signal.Signals, raised: type[BaseException], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _handler()
    with pytest.raises(raised) as caught, report_after_signal(lambda: "it is over"):
        signal.raise_signal(number)
    assert capsys.readouterr().err == f"penstock: {name}: it is over\n"
    assert getattr(caught.value, "code", 143) == 143
    assert _handler() == before


def test_a_block_may_take_a_signal_and_go_on_and_the_second_one_leaves_a_notebook_its_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    with interrupts(lambda: False) as taken:
        signal.raise_signal(signal.SIGINT)
        assert taken.came == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_handlers_of_the_user_stay_in_force() -> None:
    heard: list[int] = []

    def own(number: int, frame: object) -> None:
        heard.append(number)

    signal.signal(signal.SIGTERM, own)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
    assert heard == [signal.SIGTERM]
    assert _handler() == (signal.SIG_IGN, own)


def test_a_handler_that_is_set_in_the_block_stays() -> None:
    with interrupts():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_another_thread_sets_no_handlers() -> None:
    before, seen = _handler(), []

    def run() -> None:
        with interrupts(), defer_signals(), keep_handlers():
            seen.append(_handler())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]


def test_signals_that_are_put_off_come_at_the_end_of_the_block() -> None:
    reached = []

    def work() -> None:
        with defer_signals():
            signal.raise_signal(signal.SIGINT)
            reached.append("the end")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached == ["the end"]


def test_what_spark_sets_when_it_starts_does_not_displace_a_handler() -> None:
    def spark_own(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    def own(number: int, frame: object) -> None:
        pass

    with interrupts() as taken:
        with keep_handlers():
            signal.signal(signal.SIGINT, spark_own)
        assert signal.getsignal(signal.SIGINT) is taken
    assert signal.getsignal(signal.SIGINT) is spark_own
    signal.signal(signal.SIGINT, own)
    with keep_handlers():
        signal.signal(signal.SIGINT, spark_own)
    assert signal.getsignal(signal.SIGINT) is own


def test_the_command_that_continues_a_stream_ends_no_other_run(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["python", "-u", "game.py", "--mode=streaming", "--take_over", "--checkpoint_location=my state"]
    monkeypatch.setattr(sys, "orig_argv", words)
    monkeypatch.setattr("penstock_spark.process.interrupts.is_interactive", lambda: False)
    assert continuing_command() == "python -u game.py --mode=streaming '--checkpoint_location=my state'"


def test_a_program_is_a_notebook_only_if_ipython_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shells: list[Any] = [None]
    monkeypatch.delattr(sys, "ps1", raising=False)  # An emulated shell of another test leaves it there.
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shells[0]))
    assert not is_interactive()
    shells[0] = object()
    assert is_interactive()


def test_a_run_that_ends_before_it_begins_leaves_the_connection_on_which_java_owes_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next question on it, such as the one that stops Spark at the end, would also wait for a free core."""
    left: list[str] = []
    connection = SimpleNamespace(close=lambda: left.append("closed"))
    client = SimpleNamespace(get_thread_connection=lambda: connection)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(_gateway_client=client))
    monkeypatch.setattr(execute, "execute", lambda *_: signal.raise_signal(signal.SIGTERM))
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create([1])
    with pytest.raises(SystemExit):
        pipeline.run()
    assert left == ["closed"]
