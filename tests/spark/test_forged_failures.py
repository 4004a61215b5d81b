"""Data that Spark quotes in its errors is never taken for what a task of ours wrote, and never unpickled."""

from __future__ import annotations

import base64
import os
import pickle
import re
import sys
import threading

import pytest
from pyspark.sql import functions as F

import penstock as beam
from penstock.error import RunnerError
from penstock.io.sparkio import from_dataframe
from penstock.options.pipeline_options import PipelineOptions
from penstock_spark.reports.failure import Failure, mark
from penstock_spark.reports.reporting import Reporting, reports_of


class Touches:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.fixture
def touched(tmp_path):
    """The folder that a forged mark makes as soon as somebody unpickles it."""
    return str(tmp_path / "touched")


def forged(path):
    """What data would hold: a pickle between the words of a mark, with a signature or without one."""
    packed = base64.b64encode(pickle.dumps(Touches(path))).decode()
    signed = Reporting().signature(packed)
    return f"penstock-failure<{packed}> penstock-failure<{signed}:{packed}> penstock-failure<{'0' * 64}:{packed}>"


def test_a_forged_mark_in_a_line_that_spark_cannot_cast_is_only_text(spark, touched, capfd):
    lines = spark.createDataFrame([(forged(touched),)], "line string")
    pipeline = beam.Pipeline()
    pipeline | from_dataframe(lines.select(F.col("line").cast("int").alias("n"))) | beam.Map(str)
    with pytest.raises(RunnerError, match='Spark cannot cast a value of the type "STRING" to "INT"'):
        pipeline.run()
    assert not os.path.exists(touched)
    assert "penstock-failure" not in "".join(capfd.readouterr())


def run_with(function, **options):
    pipeline = beam.Pipeline(options=PipelineOptions([], **options))
    pipeline | beam.Create([1]) | "It" >> beam.Map(function)
    with pytest.raises(Exception) as failed:  # noqa: PT011 - the tests look at it
        pipeline.run().wait_until_finish()
    return failed.value


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_a_forged_mark_in_the_text_of_an_exception_is_only_text(touched, mode):
    text = forged(touched)

    def fails(element):
        raise ValueError(text)

    error = run_with(fails, mode=mode)
    assert type(error) is ValueError
    assert text in str(error)
    assert "[while running 'It' (" in str(error)
    assert not os.path.exists(touched)


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_a_forged_mark_in_what_a_step_leaves_with_is_only_text(touched, mode):
    text = forged(touched)
    error = run_with(lambda element: sys.exit(text), mode=mode)
    assert not os.path.exists(touched)
    assert isinstance(error, Exception)


def test_a_mark_of_another_run_is_only_text(touched, monkeypatch):
    """Also of one in the same program: what its logs have told does not come back as an error of this run."""
    with reports_of(Reporting()):
        old = mark(KeyError("of old"), "at step 'Old' (old.py:1)")
    assert re.search("penstock-failure<[0-9a-f]{64}:", old)

    def leaves(element):
        os.write(2, old.encode())
        raise ValueError(old)

    error = run_with(leaves)
    assert type(error) is ValueError
    assert "[while running 'It' (" in str(error)
    assert "[while running 'Old'" not in str(error)


def test_the_runs_of_two_threads_read_only_their_own_marks():
    errors = {}

    def run(name):
        errors[name] = run_with(lambda element: {}[name])

    threads = [threading.Thread(target=run, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: type(error) for name, error in errors.items()} == dict.fromkeys("abc", KeyError)
    assert all(error.args[0].startswith(name) for name, error in errors.items())


def test_the_key_stands_neither_in_explain_nor_in_logs_nor_in_errors(spark, capfd, caplog, monkeypatch):
    keys = []
    made = Reporting.__init__

    def noting(self, *args, **kwargs):
        made(self, *args, **kwargs)
        keys.append(self.key)

    monkeypatch.setattr(Reporting, "__init__", noting)
    caplog.set_level("DEBUG", "penstock_spark")
    pipeline = beam.Pipeline()
    pipeline | beam.Create([1]) | "It" >> beam.Map(lambda element: {}[element])
    with pytest.raises(KeyError) as failed:
        pipeline.run()
    shown = "".join(
        [*capfd.readouterr(), caplog.text, pipeline.explain(), *failed.value.__notes__, str(failed.value)]
    )
    shown += repr(Reporting())
    assert keys
    for key in keys:
        for form in (key.hex(), base64.b64encode(key).decode(), repr(key)[2:-1]):
            assert form not in shown


def test_a_failure_is_told_to_its_own_run_only():
    from penstock_spark.reports.failure import find_failure

    with reports_of(Reporting()):
        text = mark(KeyError("x"), "at step 'A'")
        assert isinstance(find_failure(f"forged penstock-failure<{'0' * 64}:AAAA> {text}"), Failure)
    assert find_failure(text) is None
