"""A step that ends its worker, or leaves it, is named."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock as beam
from tests.spark.readable import assert_readable, failure_of

HERE = Path(__file__).name


def exits(_):
    os._exit(3)


def crashes(_):
    ctypes.string_at(0)


def is_killed(_):
    os.kill(os.getpid(), signal.SIGKILL)


def says_goodbye(_):
    sys.exit("good bye")


def is_interrupted(_):
    raise KeyboardInterrupt


def closes(_):
    raise GeneratorExit


def asks_for_much(_):
    return bytearray(1 << 62)


def asks_numpy_for_much(_):
    return np.zeros(1 << 55)


ENDS = {
    exits: "the Python worker of this step has died",
    crashes: "has died: Segmentation fault, at " + HERE,
    is_killed: "the Python worker of this step has died",
    says_goodbye: "the step raised SystemExit: good bye",
    is_interrupted: "the step raised KeyboardInterrupt",
    closes: "the step raised GeneratorExit",
    asks_for_much: "a step asks for more memory than the machine has",
    asks_numpy_for_much: "a step asks for more memory than the machine has: Unable to allocate",
}


@pytest.mark.parametrize("ends", ENDS, ids=lambda ends: ends.__name__)
def test_a_step_that_ends_its_worker_is_named(ends):
    def build(pipeline):
        numbers = pipeline | beam.Create(range(3)) | "Before" >> beam.Map(lambda x: x)
        numbers | "Ends" >> beam.Map(ends) | "After" >> beam.Map(str)

    assert_readable(failure_of(build), ENDS[ends], f"at step 'Ends' ({HERE}:")


@pytest.mark.parametrize(
    ("ends", "place"),
    [
        (exits, "before"),
        (says_goodbye, "behind"),
        (closes, "before"),
        (asks_for_much, "behind"),
        pytest.param(exits, "behind", marks=pytest.mark.soak),
        pytest.param(says_goodbye, "before", marks=pytest.mark.soak),
        pytest.param(closes, "behind", marks=pytest.mark.soak),
        pytest.param(asks_for_much, "before", marks=pytest.mark.soak),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_step_of_a_stream_that_ends_its_worker_is_named(ends, place, tmp_path):
    def build(pipeline):
        numbers = pipeline | beam.Create(range(3))
        if place == "before":
            numbers = numbers | "Ends" >> beam.Map(ends)
        groups = numbers | beam.Map(lambda x: (x, x)) | beam.GroupByKey() | beam.Keys()
        if place == "behind":
            groups = groups | "Ends" >> beam.Map(ends)
        groups | beam.Map(str) | beam.io.WriteToText(str(tmp_path / "out"))

    assert_readable(failure_of(build, mode="streaming"), ENDS[ends], f"at step 'Ends' ({HERE}:")


class Leaves(beam.DoFn):
    def __init__(self, method):
        self.method = method

    def _perhaps(self, method):
        if self.method == method:
            sys.exit(f"in {method}")

    def setup(self):
        self._perhaps("setup")

    def start_bundle(self):
        self._perhaps("start_bundle")

    def process(self, element):
        yield element
        self._perhaps("process")

    def finish_bundle(self):
        self._perhaps("finish_bundle")

    def teardown(self):
        """Other steps are torn down after an error."""


@pytest.mark.parametrize("method", ["setup", "start_bundle", "process", "finish_bundle"])
def test_a_method_that_leaves_names_its_step_and_not_one_that_is_torn_down_after_it(method):
    def build(pipeline):
        numbers = pipeline | beam.Create(range(3)) | "First" >> beam.ParDo(Leaves(None))
        numbers | "Ends" >> beam.ParDo(Leaves(method)) | "Last" >> beam.ParDo(Leaves(None))

    assert_readable(failure_of(build), f"SystemExit: in {method}", "at step 'Ends'")


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_a_function_that_leaves_on_the_driver_names_its_step(mode):
    def build(pipeline):
        (
            pipeline
            | beam.Create(range(3))
            | "Each" >> beam.io.ForEachBatch(lambda elements, number: sys.exit(3))
        )

    assert_readable(failure_of(build, mode=mode), "the step raised SystemExit: 3", "at step 'Each")
