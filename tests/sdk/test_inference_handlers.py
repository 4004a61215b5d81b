"""The handlers of models, alone; and what `RunInference` refuses."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.ml.inference.base import (
    KeyedModelHandler,
    KeyModelMapping,
    MaybeKeyedModelHandler,
    ModelHandler,
    PredictionResult,
    RunInference,
)
from penstock.ml.inference.keyed import Models


class Times(ModelHandler[int, int, int]):
    """Multiplies; notes which models are loaded."""

    loaded: list[int]

    def __init__(self, factor: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.factor = factor
        self.loaded = []

    def load_model(self) -> int:
        self.loaded.append(self.factor)
        return self.factor

    def run_inference(self, batch: Any, model: int, inference_args: Any = None) -> Any:
        return [model * example for example in batch]


def test_functions_are_called_in_beams_order() -> None:
    handler = Times(1).with_preprocess_fn(len).with_preprocess_fn(str).with_postprocess_fn(abs)
    handler = handler.with_postprocess_fn(hex)
    assert list(handler.get_preprocess_fns()) == [str, len]
    assert list(handler.get_postprocess_fns()) == [abs, hex]
    assert handler.run_inference([2], handler.load_model()) == [2]


def test_wrapped_handlers_keep_what_the_inner_one_says() -> None:
    inner = Times(3, max_batch_size=7, batch_length_fn=len, env_vars={"A": "b"})
    for handler in (inner.with_preprocess_fn(len), KeyedModelHandler(inner), MaybeKeyedModelHandler(inner)):
        assert handler.batch_elements_kwargs() == {"max_batch_size": 7, "length_fn": len}
    assert inner.with_no_batching().should_skip_batching()
    assert inner.with_no_batching().batch_elements_kwargs() == {}


def test_examples_go_to_the_model_of_their_key() -> None:
    first, second = Times(2), Times(10)
    handler = KeyedModelHandler([KeyModelMapping(["a", "b"], first), KeyModelMapping(["c"], second)])
    models = handler.load_model()
    assert first.loaded == [], "models are loaded when they are needed"
    batch = [("c", 1), ("a", 1), ("c", 2), ("b", 4)]
    assert sorted(handler.run_inference(batch, models)) == [("a", 2), ("b", 8), ("c", 10), ("c", 20)]
    assert handler.get_num_bytes(batch) > 0
    assert (first.loaded, second.loaded) == ([2], [10])
    with pytest.raises(ValueError, match="1 keys of a batch have no model handler"):
        list(handler.run_inference([("z", 1)], models))


def test_the_model_that_was_not_used_for_longest_makes_room() -> None:
    handlers = [Times(number) for number in range(3)]
    models = Models(handlers, 2)
    for number in (0, 1, 0, 2, 0, 1):
        assert models.get(number) == number
    assert [handler.loaded for handler in handlers] == [[0], [1, 1], [2]]


@pytest.mark.parametrize("batch", [[1, 2], [("a", 1), ("b", 2)]])
def test_keys_are_there_or_not(batch: list[Any]) -> None:
    handler = MaybeKeyedModelHandler(Times(2))
    expected = [(each[0], 2 * each[1]) if isinstance(each, tuple) else 2 * each for each in batch]
    assert list(handler.run_inference(batch, 2)) == expected
    assert handler.get_num_bytes(batch) > 0


@pytest.mark.parametrize(
    ("make", "kind", "what"),
    [
        (lambda: Times(1, large_model=True), UnsupportedByRunner, "does not have Beam's large_model"),
        (lambda: Times(1, model_copies=2), UnsupportedByRunner, "does not have Beam's model_copies"),
        (lambda: Times(1, max_batch_weight=2), UnsupportedByRunner, "does not have Beam's max_batch_weight"),
        (lambda: Times(1, max_batch=2), TypeError, "has no argument 'max_batch'"),
        (lambda: RunInference(len), TypeError, "takes a ModelHandler, and not a builtin"),
        (
            lambda: RunInference(Times(1), watch_model_pattern="*.bin"),
            UnsupportedByRunner,
            "watch_model_pattern",
        ),
        (lambda: RunInference(Times(1), model_identifier="a"), UnsupportedByRunner, "model_identifier"),
        (lambda: RunInference(Times(1), models=1), TypeError, "has no argument 'models'"),
        (lambda: RunInference(Shares(1)), UnsupportedByRunner, "a model that processes share"),
        (
            lambda: KeyedModelHandler(Times(1).with_preprocess_fn(len)),
            ValueError,
            "functions before or after",
        ),
        (lambda: MaybeKeyedModelHandler(Times(1).with_postprocess_fn(len)), ValueError, "functions before"),
        (lambda: KeyedModelHandler([]), ValueError, "there is no model handler"),
        (lambda: KeyedModelHandler([KeyModelMapping([], Times(1))]), ValueError, "has no keys"),
        (
            lambda: KeyedModelHandler([KeyModelMapping(["a", "a"], Times(1))]),
            ValueError,
            "two model handlers",
        ),
        (lambda: KeyedModelHandler([KeyModelMapping(["a"], Times(1))], 0), ValueError, "hint is 0"),
        (lambda: KeyedModelHandler(Times(1), 2), ValueError, "there is one model"),
        (
            lambda: KeyedModelHandler([KeyModelMapping(["a"], Times(1, max_batch_size=3))]),
            ValueError,
            "has arguments of batches",
        ),
    ],
)
def test_what_does_not_work_is_refused_where_it_is_written(make: Any, kind: Any, what: str) -> None:
    with pytest.raises(kind) as raised:
        make()
    assert what in str(raised.value)
    assert "test_inference_handlers.py" in str(raised.value)
    assert "hint: " in str(raised.value)


class Shares(Times):
    def share_model_across_processes(self) -> bool:
        return True


def test_arguments_that_the_handler_refuses_fail_the_construction() -> None:
    class Strict(Times):
        def validate_inference_args(self, inference_args: Any) -> None:
            raise ValueError("no arguments, please")

    with pytest.raises(ValueError, match="no arguments, please"):
        beam.Pipeline() | beam.Create([1]) | RunInference(Strict(1), inference_args={"a": 1})


def test_a_result_says_what_it_is_about() -> None:
    assert PredictionResult(1, 2) == (1, 2, None)
    assert PredictionResult(1, 2, "m")._fields == ("example", "inference", "model_id")
