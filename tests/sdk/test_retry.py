"""A function is called again after an error as often, and after as long, as was asked for."""

import unittest

import pytest

from penstock.testing.test_utils import patch_retry
from penstock.utils import retry


class Recorder:
    def __init__(self):
        self.delays = []
        self.said = []

    def sleep(self, seconds):
        self.delays.append(seconds)

    def log(self, message, *args):
        self.said.append(message % args)


def failing(times, error=OSError):
    left = [times]

    def ask(answer):
        left[0] -= 1
        if left[0] >= 0:
            raise error("busy")
        return answer

    return ask


def test_delays_grow_up_to_the_longest_and_the_last_error_is_raised():
    clock = Recorder()
    tried = retry.with_exponential_backoff(clock=clock, logger=clock.log, fuzz=False, max_delay_secs=15)
    assert tried(failing(3))("yes") == "yes"
    assert clock.delays == [5, 10, 15]
    assert all(text.startswith("Retry with exponential backoff: waiting for") for text in clock.said)
    assert "calling ask again, which raised OSError: busy" in clock.said[0]
    with pytest.raises(OSError, match="busy"):
        tried(failing(100))("yes")
    assert len(clock.delays) == 3 + 7


def test_no_retries_and_permanent_errors_call_once():
    clock = Recorder()
    with pytest.raises(OSError, match="busy"):
        retry.no_retries(failing(1))("yes")
    with pytest.raises(retry.PermanentException):
        retry.with_exponential_backoff(clock=clock)(failing(1, retry.PermanentException))("yes")
    assert clock.delays == []


def test_all_delays_together_stay_within_their_limit_and_chance_shortens_each_by_half_at_most():
    within = list(retry.FuzzedExponentialIntervals(10, 1000, max_delay_secs=10, stop_after_secs=95, fuzz=0))
    assert within == [10] * 9
    fuzzed = list(retry.FuzzedExponentialIntervals(8, 200, factor=1))
    assert all(4 <= delay <= 8 for delay in fuzzed)
    assert len(set(fuzzed)) > 1


@pytest.mark.parametrize(("arguments", "said"), [((1, 10_001), "num_retries"), ((1, 1, 2, 1.5), "fuzz")])
def test_wrong_limits_are_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        retry.FuzzedExponentialIntervals(*arguments)


def test_patched_retries_do_not_wait_until_the_test_ends(tmp_path, monkeypatch):
    (tmp_path / "asks_a_service.py").write_text(
        "from penstock.utils import retry\n"
        "asked = []\n"
        "@retry.with_exponential_backoff(num_retries=3, initial_delay_secs=3600)\n"
        "def ask():\n"
        "    asked.append(1)\n"
        "    raise OSError('busy')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import asks_a_service

    case, before = unittest.TestCase(), asks_a_service.ask
    patch_retry(case, asks_a_service)
    with pytest.raises(OSError, match="busy"):
        asks_a_service.ask()
    assert len(asks_a_service.asked) == 4
    patched = retry.with_exponential_backoff
    case.doCleanups()
    assert asks_a_service.ask is not before
    assert retry.with_exponential_backoff is not patched
