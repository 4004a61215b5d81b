"""DoFns in a child process: what ends the child is an error of one element, and no child outlives its parent."""

import concurrent.futures.process
import contextlib
import faulthandler
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

import penstock as beam
from penstock.metrics.execution import MetricsContainer, set_current
from penstock.metrics.metric import Metrics
from penstock.pvalue import TaggedOutput
from penstock.transforms.dead_letters import DeadLetterOptions, ExceptionHandlingDoFn
from penstock.utils.child_process import ChildProcess, ProcessEnded

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

OPTIONS = DeadLetterOptions("good", "bad", Exception, False, True, 1.0, None, None, None, None, False)


def isolated(dofn, **changes):
    return ExceptionHandlingDoFn(dofn, DeadLetterOptions(**{**OPTIONS.__dict__, **changes}))


def gone(pid, seconds=5.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def at_work(group):
    """True if a process of a group has not ended, nor waits only to be asked how it ended."""
    for process in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group, *_ = process.read_text().rpartition(")")[2].split()
            if int(its_group) == group and state != "Z":
                return True
    return False


class Watched(beam.DoFn):
    """Tells its process and its life; ends its process, raises or hangs if told so."""

    def __init__(self):
        self.life = []
        self.seen = Metrics.counter("test", "seen")

    def setup(self):
        self.life.append("setup")

    def start_bundle(self):
        self.life.append("start")

    def process(self, order, side=None):
        self.seen.inc()
        match order:
            case "exit":
                os._exit(7)
            case "abort":
                faulthandler.disable()
                os.kill(os.getpid(), signal.SIGSEGV)
            case "hang":
                subprocess.Popen(["sleep", "30"])
                time.sleep(30)
            case "raise":
                raise KeyError("raised")
            case "unpicklable":
                yield threading.Lock()
        yield TaggedOutput("told", (os.getpid(), list(self.life), side))

    def finish_bundle(self):
        self.life.append("finish")


def told(outputs):
    (output,) = outputs
    assert output.tag == "told", output
    return output.value


def letter(outputs):
    (output,) = outputs
    assert output.tag == "bad", output
    return output.value


@pytest.fixture
def dofn():
    result = isolated(Watched())
    result.start_bundle()
    yield result
    result.teardown()


def test_what_ends_the_child_is_a_dead_letter_and_the_next_element_gets_a_new_child(dofn):
    first, life, _ = told(dofn.process("tell"))
    assert first != os.getpid()
    assert life == ["setup", "start"]
    assert told(dofn.process("tell"))[0] == first
    for order, text in (("exit", "exit code 7"), ("abort", "SIGSEGV")):
        element, (kind, shown, _) = letter(dofn.process(order))
        assert (element, kind) == (order, concurrent.futures.process.BrokenProcessPool)
        assert text in shown
    second, life, _ = told(dofn.process("tell"))
    assert second != first
    assert life == ["setup", "start"]
    assert gone(first)


def test_a_bundle_is_begun_and_finished_in_the_child(dofn):
    told(dofn.process("tell"))
    dofn.finish_bundle()
    dofn.start_bundle()
    assert told(dofn.process("tell"))[1] == ["setup", "start", "finish", "start"]
    assert dofn.dofn.life == []


def test_an_element_that_takes_too_long_ends_the_child_and_what_that_has_started():
    dofn = isolated(Watched(), timeout_seconds=0.3)
    dofn.start_bundle()
    first = told(dofn.process("tell"))[0]
    _, (kind, shown, _) = letter(dofn.process("hang"))
    assert (kind, shown) == (TimeoutError, "TimeoutError()")
    assert gone(first)
    assert not at_work(first)
    assert told(dofn.process("tell"))[0] != first
    dofn.teardown()


def test_an_error_comes_with_its_class_and_the_line_in_the_users_file(dofn):
    _, (kind, shown, lines) = letter(dofn.process("raise"))
    assert (kind, shown) == (KeyError, "KeyError('raised')")
    assert any("test_isolated.py" in line and "raised" in line for line in lines)


def test_an_output_that_cannot_be_pickled_is_a_dead_letter(dofn):
    _, (kind, shown, _) = letter(dofn.process("unpicklable"))
    assert kind is TypeError
    assert "cannot be pickled" in shown


def test_a_side_input_arrives_also_when_it_changes(dofn):
    large, other = {"a": 1}, {"b": 2}
    assert [told(dofn.process("tell", side=side))[2] for side in (large, large, other, large)] == [
        large,
        large,
        other,
        large,
    ]


def test_what_the_child_counts_is_counted(dofn):
    container = MetricsContainer("Step")
    set_current(container)
    try:
        for order in ("tell", "raise", "tell", "exit"):
            list(dofn.process(order))
    finally:
        set_current(None)
    # What the child had counted for the element that ended it is lost with it.
    assert container.counters == {("test", "seen"): 3}


def test_teardown_ends_the_child():
    dofn = isolated(Watched())
    dofn.start_bundle()
    pid = told(dofn.process("tell"))[0]
    dofn.teardown()
    assert gone(pid)


def test_a_child_that_is_forgotten_ends():
    child = ChildProcess(lambda request: request)
    pid = child.pid
    assert child.ask(b"x") == b"x"
    del child
    assert gone(pid)


def test_a_child_that_has_ended_between_two_elements_is_replaced(dofn):
    first = told(dofn.process("tell"))[0]
    os.kill(first, signal.SIGKILL)
    time.sleep(0.1)
    assert told(dofn.process("tell"))[0] != first


class FailsToStart(beam.DoFn):
    def setup(self):
        raise OSError("no connection")

    def process(self, x):
        yield x


def test_what_setup_raises_is_no_fault_of_the_element():
    dofn = isolated(FailsToStart())
    dofn.start_bundle()
    with pytest.raises(OSError, match="no connection"):
        list(dofn.process(1))
    dofn.teardown()


class Late(beam.DoFn):
    def process(self, x):
        yield x

    def finish_bundle(self):
        return ["late"]


def test_elements_at_the_end_of_a_bundle_are_refused():
    dofn = isolated(Late())
    dofn.start_bundle()
    list(dofn.process(1))
    with pytest.raises(RuntimeError, match="not safe with use_subprocess"):
        dofn.finish_bundle()
    dofn.teardown()

    class Yielding(Late):
        def finish_bundle(self):
            yield "late"

    with pytest.raises(ValueError, match="yields in finish_bundle"):
        beam.ParDo(Yielding()).with_exception_handling(use_subprocess=True)


PARENT = """
import os, signal, sys, time
from penstock.utils.child_process import ChildProcess

def answer(request):
    while True:
        pass

first, second = ChildProcess(answer), ChildProcess(answer)
print(first.pid, second.pid, flush=True)
try:
    first.ask(b"", 0.2)
except TimeoutError:
    pass
third = ChildProcess(answer)
print(third.pid, flush=True)
for child in (second, third):
    child._connection.send_bytes(b"")
time.sleep(0.2)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a busy child that its parent has ended")
def test_children_end_when_their_parent_is_killed_although_they_are_busy():
    parent = subprocess.run(
        [sys.executable, "-c", PARENT], capture_output=True, text=True, timeout=30, check=False
    )
    assert parent.returncode == -signal.SIGKILL, parent.stderr
    pids = [int(pid) for pid in parent.stdout.split()]
    assert len(pids) == 3
    assert all(map(gone, pids))


def test_asking_a_child_that_has_ended_says_how():
    child = ChildProcess(lambda request: os._exit(3))
    with pytest.raises(ProcessEnded, match="ended with exit code 3"):
        child.ask(b"")
    with pytest.raises((ProcessEnded, OSError)):
        child.ask(b"")
