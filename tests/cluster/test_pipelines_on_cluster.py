"""Whole pipelines on a cluster whose workers know nothing of penstock or of the program."""

from __future__ import annotations

import sys
from typing import Any

import pytest


def test_words_are_counted_from_file_to_file(outcomes: dict[str, Any]) -> None:
    once, twice = (f"{word}: 20" for word in ("not", "or")), (f"{word}: 40" for word in ("be", "to"))
    more = (f"{word}: 20" for word in ("is", "question", "that", "the"))
    assert outcomes["word_count"] == sorted([*once, *twice, *more])


@pytest.mark.parametrize("pipeline", ["side_inputs", "keys_of_the_main_program", "module_beside_the_program"])
def test_a_pipeline_has_the_outcome_that_it_asserts(outcomes: dict[str, Any], pipeline: str) -> None:
    assert outcomes[pipeline] == "as expected"


def test_an_error_of_the_users_own_class_arrives_with_the_name_of_its_step(outcomes: dict[str, Any]) -> None:
    message = outcomes["failing_function"]
    assert message.startswith("an odd number [while running 'Halve'")
    assert "public_pipelines.py:" in message


def test_an_assertion_that_does_not_hold_says_what_was_missing(outcomes: dict[str, Any]) -> None:
    message = outcomes["failing_assertion"]
    assert "assert_that" in message
    assert "missing elements [3]" in message
    assert "unexpected elements [2]" in message


def test_metrics_of_all_workers_are_added_up(outcomes: dict[str, Any]) -> None:
    long_words, words, shortest, longest = outcomes["metrics"]
    assert (long_words, words, shortest, longest) == (40, 200, 2, 8)


def test_what_a_task_does_twice_at_once_counts_once(outcomes: dict[str, Any]) -> None:
    attempts, are_all_written_once, counted, files = outcomes["a_task_that_runs_twice_at_once"]
    assert attempts == ["attempt-0", "attempt-1"]
    assert are_all_written_once
    assert counted == 1000
    assert files == 2


def test_a_master_says_whether_it_knows_a_program(outcomes: dict[str, Any]) -> None:
    assert outcomes["what_the_master_knows"] == [True, False, None, True]


@pytest.mark.skipif(sys.platform != "linux", reason="another system has no such folder")
def test_a_stream_whose_checkpoint_the_workers_do_not_see_does_not_start(outcomes: dict[str, Any]) -> None:
    message = outcomes["checkpoint_of_the_driver_alone"]
    assert message.startswith("a worker of the cluster does not see the checkpoint")
    assert "in the checkpoint /proc/self/cwd/checkpoint\n" in message
