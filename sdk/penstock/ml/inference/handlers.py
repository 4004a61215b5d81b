"""Handlers, which load a model and return its predictions: `ModelHandler`, and handlers around another one."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from penstock.checks.unsupported_arguments import refuse_unsupported

ExampleT = TypeVar("ExampleT")
PredictionT = TypeVar("PredictionT")
ModelT = TypeVar("ModelT")


class PredictionResult(NamedTuple):
    """An example and its prediction (Beam's name).

    Attributes:
        example: The input of the model.
        inference: Its prediction.
        model_id: The name of the model, if the handler sets it.
    """

    example: Any
    inference: Any
    model_id: str | None = None


class ModelHandler(Generic[ExampleT, PredictionT, ModelT]):
    """Loads a model and returns its predictions: subclass it and define both (Beam's ``ModelHandler``).

    Args:
        min_batch_size: These and the next four are arguments of `penstock.BatchElements`: the minimum size of a batch.
        max_batch_size: The maximum size of a batch.
        max_batch_duration_secs: How many seconds a batch of unbounded input may wait for more elements.
        element_size_fn: A function from an example to its share of the size of its batch.
        batch_length_fn: A function from an example to its length; examples of about the same length share a batch.
        batch_bucket_boundaries: The lengths at which a new kind of batch begins.
        env_vars: Environment variables of the worker, set before the model is loaded.
        unsupported: Beam's ``max_batch_weight``, ``large_model`` and ``model_copies``, which are refused.

    Raises:
        UnsupportedByRunner: If an argument that only Beam has is passed.
        TypeError: If an argument is unknown.

    >>> class Doubling(ModelHandler[int, int, int]):
    ...     def load_model(self):
    ...         return 2
    ...     def run_inference(self, batch, model, inference_args=None):
    ...         return [model * example for example in batch]
    >>> handler = Doubling(max_batch_size=16)
    >>> handler.run_inference([1, 2], handler.load_model())
    [2, 4]
    """

    def __init__(
        self,
        *,
        min_batch_size: int | None = None,
        max_batch_size: int | None = None,
        max_batch_duration_secs: int | None = None,
        element_size_fn: Callable[[Any], int] | None = None,
        batch_length_fn: Callable[[Any], int] | None = None,
        batch_bucket_boundaries: list[int] | None = None,
        env_vars: Mapping[str, str] | None = None,
        **unsupported: object,
    ) -> None:
        refuse_unsupported(ModelHandler, unsupported, _INSTEAD)
        given = {
            "min_batch_size": min_batch_size,
            "max_batch_size": max_batch_size,
            "max_batch_duration_secs": max_batch_duration_secs,
            "element_size_fn": element_size_fn,
            "length_fn": batch_length_fn,
            "bucket_boundaries": batch_bucket_boundaries,
        }
        self._batching_kwargs = {name: value for name, value in given.items() if value is not None}
        self._env_vars = dict(env_vars or {})

    def load_model(self) -> ModelT:
        """Loads the model; called once in each worker process that needs it."""
        raise NotImplementedError(type(self))

    def run_inference(
        self, batch: Sequence[ExampleT], model: ModelT, inference_args: dict[str, Any] | None = None
    ) -> Iterable[PredictionT]:
        """Returns the predictions for the examples of a batch, in their order.

        Args:
            batch: The examples, at least one.
            model: What `load_model` returned.
            inference_args: The argument of `RunInference`.
        """
        raise NotImplementedError(type(self))

    def get_num_bytes(self, batch: Sequence[ExampleT]) -> int:
        """Returns the size of a batch in bytes, for metrics; by default of its pickled form."""
        return len(pickle.dumps(batch))

    def get_metrics_namespace(self) -> str:
        """Returns the namespace of the metrics."""
        return "RunInference"

    def get_resource_hints(self) -> dict[str, Any]:
        """Returns the resource hints of the step."""
        return {}

    def batch_elements_kwargs(self) -> Mapping[str, Any]:
        """Returns the arguments of `penstock.BatchElements`."""
        # A subclass written for Beam need not call the constructor.
        return getattr(self, "_batching_kwargs", {})

    def validate_inference_args(self, inference_args: dict[str, Any] | None) -> None:
        """Raises an error if the handler does not take these arguments; by default it takes all."""

    def update_model_path(self, model_path: str | None = None) -> None:
        """Changes where `load_model` finds the model; never called here, since no step changes its model."""

    def get_preprocess_fns(self) -> Sequence[Callable[[Any], Any]]:
        """Returns the functions of each example before it joins a batch, in the order of their calls."""
        return []

    def get_postprocess_fns(self) -> Sequence[Callable[[Any], Any]]:
        """Returns the functions of each prediction, in the order of their calls."""
        return []

    def should_skip_batching(self) -> bool:
        """True if the elements are batches already."""
        return False

    def set_environment_vars(self) -> None:
        """Sets the environment variables that the constructor was given."""
        os.environ.update(getattr(self, "_env_vars", {}))

    def with_preprocess_fn(self, fn: Callable[[Any], ExampleT]) -> ModelHandler[Any, PredictionT, ModelT]:
        """Returns this handler with a function of each element before its batch; the last one added is called first."""
        return PreProcessingModelHandler(self, fn)

    def with_postprocess_fn(self, fn: Callable[[PredictionT], Any]) -> ModelHandler[ExampleT, Any, ModelT]:
        """Returns this handler with a function of each prediction; the last one added is called last."""
        return PostProcessingModelHandler(self, fn)

    def with_no_batching(self) -> ModelHandler[Any, PredictionT, ModelT]:
        """Returns this handler for elements that are batches already; functions before it take whole batches."""
        return PrebatchedModelHandler(self)

    def share_model_across_processes(self) -> bool:
        """True if all processes of a machine use one model. It is False; `RunInference` refuses a handler with True."""
        return False

    def model_copies(self) -> int:
        """Returns the number of copies of the model in a process: 1."""
        return 1

    def override_metrics(self, metrics_namespace: str = "") -> bool:
        """True if the handler counts its own metrics, so that `RunInference` does not; it may store the namespace."""
        return False


_INSTEAD = {
    "max_batch_weight": "give max_batch_size and element_size_fn: a batch ends where the sum of the sizes reaches it",
    "large_model": "each worker process loads its model; run fewer tasks on a machine, with spark.executor.cores",
    "model_copies": "each worker process loads one model; Spark runs as many as it has cores",
}


class WrappingModelHandler(ModelHandler[Any, Any, Any]):
    """The base of handlers around another one: everything is the inner one's."""

    def __init__(self, base: ModelHandler[Any, Any, Any]) -> None:
        super().__init__()
        self._base = base

    def load_model(self) -> object:
        return self._base.load_model()

    def run_inference(
        self, batch: Sequence[Any], model: Any, inference_args: dict[str, Any] | None = None
    ) -> Iterable[Any]:
        return self._base.run_inference(batch, model, inference_args)

    def get_num_bytes(self, batch: Sequence[Any]) -> int:
        return self._base.get_num_bytes(batch)

    def get_metrics_namespace(self) -> str:
        return self._base.get_metrics_namespace()

    def get_resource_hints(self) -> dict[str, Any]:
        return self._base.get_resource_hints()

    def batch_elements_kwargs(self) -> Mapping[str, Any]:
        return self._base.batch_elements_kwargs()

    def validate_inference_args(self, inference_args: dict[str, Any] | None) -> None:
        self._base.validate_inference_args(inference_args)

    def update_model_path(self, model_path: str | None = None) -> None:
        self._base.update_model_path(model_path)

    def get_preprocess_fns(self) -> Sequence[Callable[[Any], Any]]:
        return self._base.get_preprocess_fns()

    def get_postprocess_fns(self) -> Sequence[Callable[[Any], Any]]:
        return self._base.get_postprocess_fns()

    def should_skip_batching(self) -> bool:
        return self._base.should_skip_batching()

    def set_environment_vars(self) -> None:
        self._base.set_environment_vars()

    def share_model_across_processes(self) -> bool:
        return self._base.share_model_across_processes()

    def model_copies(self) -> int:
        return self._base.model_copies()

    def override_metrics(self, metrics_namespace: str = "") -> bool:
        return self._base.override_metrics(metrics_namespace)


class PreProcessingModelHandler(WrappingModelHandler):
    """A handler with one more function before it."""

    def __init__(self, base: ModelHandler[Any, Any, Any], fn: Callable[[Any], Any]) -> None:
        super().__init__(base)
        self._fn = fn

    def get_preprocess_fns(self) -> Sequence[Callable[[Any], Any]]:
        return [self._fn, *self._base.get_preprocess_fns()]


class PostProcessingModelHandler(WrappingModelHandler):
    """A handler with one more function after it."""

    def __init__(self, base: ModelHandler[Any, Any, Any], fn: Callable[[Any], Any]) -> None:
        super().__init__(base)
        self._fn = fn

    def get_postprocess_fns(self) -> Sequence[Callable[[Any], Any]]:
        return [*self._base.get_postprocess_fns(), self._fn]


class PrebatchedModelHandler(WrappingModelHandler):
    """A handler whose elements are batches."""

    def batch_elements_kwargs(self) -> Mapping[str, Any]:
        return {}

    def should_skip_batching(self) -> bool:
        return True
