"""`RunInference` with the real compiler and the real workers, beside Beam's own on the same handlers."""

from __future__ import annotations

import time
from collections import Counter
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

import penstock as beam
import penstock.ml.inference.base as penstock_inference
from penstock.transforms.window import FixedWindows, TimestampedValue
from penstock_spark.reports.failure import StepFailure, find_failure
from tests.runner.plain_runner import Settings, collect, collect_timed, run_plain

loads: list[str] = []
batches: list[int] = []
seen_by_beam: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_loaded() -> None:
    loads.clear()
    batches.clear()
    seen_by_beam.clear()


def note_load(name: str) -> None:
    loads.append(name)


def note_batch(size: int) -> None:
    batches.append(size)


def note_seen(elements: list[Any]) -> None:
    seen_by_beam.extend(elements)


class Model:
    """Beam refers to models weakly, so they cannot be numbers."""

    def __init__(self, factor: int) -> None:
        self.factor = factor


def handlers_of(base: Any) -> SimpleNamespace:
    """The handlers, over the classes of Beam or of penstock."""

    class Scoring(base.ModelHandler):  # type: ignore[misc,name-defined]
        def __init__(self, factor: int = 3, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.factor = factor

        def load_model(self) -> Any:
            note_load("scoring")
            return Model(self.factor)

        def run_inference(self, batch: Any, model: Any, inference_args: Any = None) -> Any:
            note_batch(len(batch))
            if any(example < 0 for example in batch):
                raise ValueError("a negative example")
            add = (inference_args or {}).get("add", 0)
            return [base.PredictionResult(each, model.factor * each + add, "scoring") for each in batch]

        def get_num_bytes(self, batch: Any) -> int:
            return 8 * len(batch)

    keyed = base.KeyedModelHandler
    return SimpleNamespace(
        plain=(Scoring(), list(range(20)), {}),
        arguments=(Scoring(), list(range(20)), {"inference_args": {"add": 100}}),
        fixed=(Scoring(min_batch_size=4, max_batch_size=4), list(range(18)), {}),
        keyed=(keyed(Scoring()), [("a", 1), ("b", 2), ("a", 3)], {}),
        maybe=(base.MaybeKeyedModelHandler(Scoring()), [("a", 1), ("b", 2)], {}),
        functions=(
            Scoring().with_preprocess_fn(int).with_postprocess_fn(lambda each: each.inference),
            ["1", "2", "3"],
            {},
        ),
        batched=(Scoring().with_no_batching(), [[1, 2], [3]], {}),
        nothing=(Scoring(), [], {}),
    )


def plain(element: Any) -> Any:
    """Without the class of Beam's or penstock's PredictionResult."""
    return tuple(map(plain, element)) if isinstance(element, tuple) else element


@pytest.mark.parametrize("name", vars(handlers_of(penstock_inference)))
@pytest.mark.parametrize("settings", [Settings(1, 1000), Settings(3, 2)])
def test_predictions_are_those_of_beam(name: str, settings: Settings) -> None:
    handler, examples, kwargs = getattr(handlers_of(penstock_inference), name)
    pipeline = beam.Pipeline()
    found = collect(pipeline | beam.Create(examples) | penstock_inference.RunInference(handler, **kwargs))
    metrics = run_plain(pipeline, settings)
    expected, counts = of_beam(name)
    assert Counter(map(plain, found)) == expected
    ours = Counter({key[3]: value for key, value in metrics.items() if key[0] == "counters"})
    assert ours["num_inferences"] == counts["num_inferences"]


@cache
def of_beam(name: str) -> tuple[Counter[Any], Counter[str]]:
    """The outputs and the counters of Beam's own RunInference."""
    beams = pytest.importorskip("apache_beam")
    inference = pytest.importorskip("apache_beam.ml.inference.base")
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
    from apache_beam.testing.util import assert_that

    handler, examples, kwargs = getattr(handlers_of(inference), name)
    pipeline = beams.Pipeline(runner=BundleBasedDirectRunner(), options=PipelineOptions([]))
    outputs = pipeline | beams.Create(examples) | inference.RunInference(handler, **kwargs)
    assert_that(outputs, note_seen)
    result = pipeline.run()
    result.wait_until_finish()
    counters = result.metrics().query()["counters"]
    return Counter(map(plain, seen_by_beam)), Counter(
        {one.key.metric.name: one.committed for one in counters}
    )


def test_one_process_loads_the_model_once_and_batches_have_the_size_that_is_wanted() -> None:
    handler, examples, _ = handlers_of(penstock_inference).fixed
    pipeline = beam.Pipeline()
    collect(pipeline | beam.Create(examples) | penstock_inference.RunInference(handler))
    metrics = run_plain(pipeline, Settings(3, 1000, inline_values=1))
    assert loads == ["scoring"]
    assert set(batches) <= {1, 2, 3, 4}
    assert sum(batches) == 18
    named = {key[3]: (key[2], value) for key, value in metrics.items()}
    assert named["num_inferences"] == ("RunInference", 18)
    assert named["inference_request_batch_size"][1].sum == 18
    assert named["inference_request_batch_byte_size"][1].sum == 8 * 18
    assert named["load_model_latency_milli_secs"][1].count == 1
    assert {"inference_batch_latency_micro_secs", "model_byte_size"} <= set(named)


def test_predictions_keep_their_windows() -> None:
    handler = handlers_of(penstock_inference).plain[0]
    pipeline = beam.Pipeline()
    values = pipeline | beam.Create([TimestampedValue(1, 1), TimestampedValue(2, 12), TimestampedValue(3, 3)])
    outputs = values | beam.WindowInto(FixedWindows(10)) | penstock_inference.RunInference(handler)
    found = collect_timed(outputs)
    run_plain(pipeline)
    assert sorted((each.inference, window.start) for each, _, window in found) == [(3, 0), (6, 10), (9, 0)]


def test_a_failing_batch_names_the_step() -> None:
    handler = handlers_of(penstock_inference).plain[0]
    pipeline = beam.Pipeline()
    pipeline | beam.Create([1, -1]) | "Score" >> penstock_inference.RunInference(handler)
    with pytest.raises(StepFailure) as raised:
        run_plain(pipeline)
    failure: Any = find_failure(str(raised.value))
    assert failure.where.startswith("at step 'Score/BeamML_RunInference' (test_inference.py:")


def test_what_fails_goes_to_the_output_of_its_stage() -> None:
    handler = (
        handlers_of(penstock_inference)
        .fixed[0]
        .with_preprocess_fn(int)
        .with_postprocess_fn(lambda each: 10 // each.inference)
    )
    pipeline = beam.Pipeline()
    examples = pipeline | beam.Create(["5", "0", "x", "-1", "2", "1", "3", "4"])
    results, failed = examples | penstock_inference.RunInference(handler).with_exception_handling()
    good = collect(results, "good")
    before = collect(failed.failed_preprocessing[0], "before")
    inside = collect(failed.failed_inferences, "inside")
    after = collect(failed.failed_postprocessing[0], "after")
    metrics = run_plain(pipeline, Settings(1, 1000))
    assert [(element, kind) for element, (kind, *_) in before] == [("x", ValueError)]
    assert [(batch, kind) for batch, (kind, *_) in inside] == [([5, 0, -1, 2], ValueError)]
    assert sorted(good) == [0, 1, 3]
    assert after == []
    assert {key[3]: value for key, value in metrics.items()}["failed_batches_counter"] == 1


def test_a_batch_that_takes_too_long_has_failed() -> None:
    class Slow(penstock_inference.ModelHandler[int, int, None]):
        def load_model(self) -> None:
            return None

        def run_inference(self, batch: Any, model: None, inference_args: Any = None) -> Any:
            time.sleep(0.3)
            return batch

    pipeline = beam.Pipeline()
    slow = penstock_inference.RunInference(Slow(min_batch_size=2)).with_exception_handling(timeout=0.02)
    _, failed = pipeline | beam.Create([1, 2]) | slow
    inside = collect(failed.failed_inferences)
    run_plain(pipeline, Settings(1, 1000))
    assert [(batch, kind) for batch, (kind, *_) in inside] == [([1, 2], TimeoutError)]


def test_predictions_are_monitored_before_the_functions_after_the_model() -> None:
    seen: list[Any] = []

    class Watch(beam.PTransform):
        def expand(self, pcoll: Any) -> Any:
            seen.append(collect(pcoll, "watched"))
            return pcoll

    handler = handlers_of(penstock_inference).plain[0].with_postprocess_fn(lambda each: each.inference)
    pipeline = beam.Pipeline()
    step = penstock_inference.RunInference(handler).with_monitoring_transform(Watch())
    found = collect(pipeline | beam.Create([1, 2]) | step)
    run_plain(pipeline)
    assert sorted(found) == [3, 6]
    assert sorted(each.inference for each in seen[0]) == [3, 6]
