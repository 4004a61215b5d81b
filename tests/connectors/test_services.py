"""Asynchronous DoFns and models on Spark, in batch and as streams."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.ml.inference.base import ModelHandler, RunInference
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.test_stream import TestStream
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import FixedWindows, TimestampedValue
from penstock.utils.call_cache import CallCache

pytestmark = pytest.mark.spark

SECONDS_A_CALL = 0.05


class Ask(beam.DoFn):
    """Doubles a number slowly; all of it is asynchronous."""

    async def setup(self) -> None:
        self.lock = asyncio.Lock()

    async def process(self, element: int) -> Any:
        async with self.lock:
            pass
        await asyncio.sleep(SECONDS_A_CALL)
        if element < 0:
            raise ConnectionError("no service")
        yield 2 * element
        if element % 2:
            yield beam.pvalue.TaggedOutput("odd", element)


class Lengths(ModelHandler[str, int, dict[str, int]]):
    """A model is loaded once in each process: it writes its process down."""

    def __init__(self, log: Path) -> None:
        super().__init__(max_batch_size=4)
        self.log = log

    def load_model(self) -> dict[str, int]:
        with self.log.open("a") as log:
            log.write(f"{os.getpid()}\n")
        return {"add": 1}

    def run_inference(self, batch: Any, model: dict[str, int], inference_args: Any = None) -> Any:
        return [len(each) + model["add"] for each in batch]


def test_two_hundred_calls_take_the_time_of_a_few(spark: Any) -> None:
    with TestPipeline(spark=spark) as warm:
        assert_that(warm | beam.Create([1]) | beam.ParDo(Ask()), equal_to([2]))
    began = time.perf_counter()
    with TestPipeline(spark=spark) as pipeline:
        numbers = pipeline | beam.Create([*range(200), -1])
        ask = beam.ParDo(Ask()).with_concurrency(50, retries=1, retry_delay_seconds=0.001)
        outputs = numbers | ask.with_outputs("odd").with_exception_handling()
        lost = outputs.bad | beam.MapTuple(lambda element, error: (element, error[0].__name__))
        assert_that(outputs.good, equal_to([2 * each for each in range(200)]), label="good")
        assert_that(outputs.odd, equal_to(list(range(1, 200, 2))), label="odd")
        assert_that(lost, equal_to([(-1, "ConnectionError")]), label="lost")
    assert time.perf_counter() - began < 200 * SECONDS_A_CALL * 0.8, "with all that Spark needs to run it"


def test_a_failing_call_fails_the_run_with_its_own_error_and_step(spark: Any) -> None:
    pipeline = TestPipeline(spark=spark)
    pipeline | beam.Create([1, -1, 2]) | "Ask" >> beam.ParDo(Ask())
    with pytest.raises(ConnectionError, match=r"no service \[while running 'Ask' \(test_services.py:\d+\)\]"):
        pipeline.run()


@pytest.mark.parametrize("events_per_batch", [None, 1])
def test_a_micro_batch_ends_when_all_its_calls_have(spark: Any, events_per_batch: int | None) -> None:
    cache = CallCache(100)

    async def asked(element: int) -> int:
        return await cache.get(element, doubled)

    with TestPipeline(spark=spark, events_per_batch=events_per_batch) as pipeline:
        stream = TestStream().advance_watermark_to(0)
        for start in (0, 10, 20):
            stream.add_elements([TimestampedValue(start + each, start + each) for each in range(10)])
            stream.advance_watermark_to(start + 10)
        answers = pipeline | stream.advance_watermark_to_infinity() | beam.Map(asked)
        sums = answers | beam.WindowInto(FixedWindows(10)) | beam.CombineGlobally(sum).without_defaults()
        after = sums | "After" >> beam.Map(doubled).with_concurrency(2)
        assert_that(sums, equal_to([90, 290, 490]), label="sums")
        assert_that(after, equal_to([180, 580, 980]), label="after")


async def doubled(element: int) -> int:
    await asyncio.sleep(0.01)
    return 2 * element


def test_a_run_that_is_cancelled_does_not_wait_for_its_calls(spark: Any, tmp_path: Path) -> None:
    async def never(line: str) -> str:
        (tmp_path / "asked").write_text(str(os.getpid()))
        await asyncio.sleep(600)
        return line

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\nb\n")
    pipeline = beam.Pipeline(options=PipelineOptions(["--mode=micro_batch"], spark=spark))
    lines = pipeline | beam.io.ReadFromText(f"{tmp_path}/in").as_stream()
    lines | beam.Map(never) | beam.io.WriteToText(f"{tmp_path}/out/lines")
    result = pipeline.run()
    wait_until(lambda: (tmp_path / "asked").exists() and (tmp_path / "asked").read_text() != "")
    worker = int((tmp_path / "asked").read_text())
    began = time.perf_counter()
    assert result.cancel() == "CANCELLED"
    wait_until(lambda: not is_alive(worker))
    assert time.perf_counter() - began < 30


def wait_until(is_true: Any, seconds_most: float = 60) -> None:
    end = time.perf_counter() + seconds_most
    while not is_true():
        assert time.perf_counter() < end, "it takes too long"
        time.sleep(0.05)


def is_alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("is_stream", [False, True])
def test_each_process_loads_a_model_once(spark: Any, tmp_path: Path, is_stream: bool) -> None:
    words = ["to", "be", "or", "not"] * 6
    log = tmp_path / "log"
    with TestPipeline(spark=spark, events_per_batch=1) as pipeline:
        source: Any = beam.Create(words)
        if is_stream:
            source = TestStream()
            for start in range(0, len(words), 8):
                source.add_elements(words[start : start + 8])
            source.advance_watermark_to_infinity()
        found = pipeline | source | RunInference(Lengths(log))
        assert_that(found, equal_to([len(word) + 1 for word in words]))
    loads = log.read_text().split()
    assert len(loads) == len(set(loads)) > 0
