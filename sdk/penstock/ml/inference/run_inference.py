"""`RunInference`, which emits the predictions of a model for the elements of a PCollection."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from penstock.checks.unsupported_arguments import refuse_unsupported
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.error import UnsupportedByRunner, noun_for, refusal
from penstock.functions.dofn import DoFn
from penstock.metrics import Metrics
from penstock.ml.inference.handlers import ModelHandler
from penstock.transforms.elements.pardo import Map, ParDo
from penstock.transforms.grouping.batching import BatchElements
from penstock.utils import clock as system_clock
from penstock.utils.shared import Shared

_INSTEAD = {
    "model_metadata_pcoll": "load the new model in your own step, or start the pipeline again with it",
    "watch_model_pattern": "start the pipeline again with the new model; a stream continues where it was",
    "model_identifier": "each RunInference loads its own model; give all examples to one of them, with keys",
    "use_model_manager": "each worker process loads its model; run fewer tasks on a machine, with spark.executor.cores",
    "model_manager_args": "each worker process loads its model",
}


class RunInferenceDLQ(NamedTuple):
    """The dead letters of ``RunInference(...).with_exception_handling()`` (Beam's name).

    Attributes:
        failed_inferences: A PCollection of batches with their errors.
        failed_preprocessing: PCollections of elements with their errors, one for each function before the model.
        failed_postprocessing: Likewise, for the functions after it.
    """

    failed_inferences: Any
    failed_preprocessing: Sequence[Any]
    failed_postprocessing: Sequence[Any]


class RunInference(PTransform[Any, Any]):
    """Emits the prediction of a model for each element (Beam's ``RunInference``).

    Elements are passed to the model in batches, see `penstock.BatchElements`. Each worker process loads the model once;
    a task that Spark repeats calls the model again.

    Args:
        model_handler: Loads the model, and returns the predictions.
        clock: An object with ``time_ns``, for metrics; by default the clock of the system.
        inference_args: Passed to each ``run_inference`` of the handler.
        metrics_namespace: The namespace of the metrics; by default the handler's.
        monitoring_transform: A transform of the predictions before the handler's functions after the model.
        unsupported: Beam's arguments for models that change, or that several processes or steps share; refused.

    Raises:
        TypeError: If `model_handler` is not a `ModelHandler`, or an argument is unknown.
        UnsupportedByRunner: If a feature of Beam is requested that penstock does not have.

    Example: ``images | RunInference(Classifier("model.bin", max_batch_size=64))``.
    """

    def __init__(
        self,
        model_handler: ModelHandler[Any, Any, Any],
        clock: object = None,
        inference_args: dict[str, Any] | None = None,
        metrics_namespace: str | None = None,
        *,
        monitoring_transform: PTransform[Any, Any] | None = None,
        **unsupported: object,
    ) -> None:
        super().__init__()
        refuse_unsupported(RunInference, unsupported, _INSTEAD)
        if not isinstance(model_handler, ModelHandler):
            what = f"RunInference takes a ModelHandler, and not {noun_for(model_handler)}"
            raise refusal(TypeError, what, hint="subclass penstock.ml.inference.base.ModelHandler")
        if model_handler.share_model_across_processes() or model_handler.model_copies() != 1:
            what = (
                f"{type(model_handler).__name__} needs a model that processes share, or several copies of it"
            )
            hint = (
                "each worker process loads one model; run fewer tasks on a machine, with spark.executor.cores"
            )
            raise UnsupportedByRunner(what, hint=hint)
        self._handler = model_handler
        self._clock = clock
        self._inference_args = inference_args
        self._metrics_namespace = metrics_namespace
        self._monitoring_transform = monitoring_transform
        self._handling: dict[str, Any] | None = None

    def with_monitoring_transform(self, monitoring_transform: PTransform[Any, Any]) -> RunInference:
        """Returns this transform, with another one that takes the predictions before the functions after the model."""
        self._monitoring_transform = monitoring_transform
        return self

    def with_exception_handling(
        self,
        *,
        exc_class: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        use_subprocess: bool = False,
        threshold: float = 1,
        timeout: float | None = None,
    ) -> RunInference:
        """Returns this transform, with a pair of outputs: the predictions, and a `RunInferenceDLQ`.

        Args:
            exc_class: The exceptions that count as failures; a batch fails as a whole.
            use_subprocess: Whether the model works in a child process of the worker.
            threshold: The maximum share of failing batches, from 0 to 1.
            timeout: The seconds that each function and each batch may take, including the time to load the model.
        """
        self._handling = {
            "exc_class": exc_class,
            "use_subprocess": use_subprocess,
            "threshold": threshold,
            "timeout": timeout,
        }
        return self

    def expand(self, pcoll: PCollection[Any]) -> object:
        """Returns the predictions; with exception handling, a pair with the dead letters.

        Raises:
            Exception: Whatever ``validate_inference_args`` of the handler raises.
        """
        handler = self._handler
        handler.validate_inference_args(self._inference_args)
        # Beam's labels, which metrics and drawings show.
        pcoll, before = self._mapped(pcoll, handler.get_preprocess_fns(), "BeamML_RunInference_Preprocess")
        if not handler.should_skip_batching():
            pcoll = pcoll | BatchElements(**handler.batch_elements_kwargs())
        loads_late = self._handling is not None and self._handling["timeout"] is not None
        dofn = RunInferenceDoFn(handler, self._clock, self._metrics_namespace, loads_late)
        asking = ParDo(dofn, self._inference_args).with_resource_hints(**handler.get_resource_hints())
        failed = None
        if self._handling is None:
            results = pcoll | "BeamML_RunInference" >> asking
        else:
            step = asking.with_exception_handling(**self._handling)
            results, failed = pcoll | "BeamML_RunInference" >> step
        if self._monitoring_transform is not None:
            _ = results | "BeamML_RunInference_MonitoringOutlet" >> self._monitoring_transform
        results, after = self._mapped(
            results, handler.get_postprocess_fns(), "BeamML_RunInference_Postprocess"
        )
        return results if self._handling is None else (results, RunInferenceDLQ(failed, before, after))

    def _mapped(
        self, pcoll: PCollection[Any], functions: Sequence[Callable[[Any], Any]], label: str
    ) -> tuple[Any, list[Any]]:
        """The results of all functions, one after another, and the elements on which each has failed."""
        failed = []
        for number, function in enumerate(functions):
            step = Map(function)
            if self._handling is None:
                pcoll = pcoll | f"{label}-{number}" >> step
            else:
                pcoll, bad = pcoll | f"{label}-{number}" >> step.with_exception_handling(**self._handling)
                failed.append(bad)
        return pcoll, failed


class _Loaded:
    """A model: `Shared` needs an object that can be referred to weakly, and a model may be a dict."""

    def __init__(self, model: object) -> None:
        self.model = model


class RunInferenceDoFn(DoFn):
    """Emits the predictions of each batch by a model that all tasks of a worker process share."""

    def __init__(
        self,
        handler: ModelHandler[Any, Any, Any],
        clock: Any,
        metrics_namespace: str | None,
        loads_late: bool,
    ) -> None:
        super().__init__()
        self._handler = handler
        self._time_ns: Callable[[], int] = clock.time_ns if clock is not None else _time_ns
        self._namespace = metrics_namespace or handler.get_metrics_namespace()
        self._loads_late = loads_late
        self._shared = Shared()
        self._loaded: _Loaded | None = None
        self._metrics: ModelMetrics | None = None

    def setup(self) -> None:
        if not self._handler.override_metrics(self._namespace):
            self._metrics = ModelMetrics(self._namespace)
        self._handler.set_environment_vars()
        if not self._loads_late:
            self._loaded = self._shared.acquire(self._load)

    def process(self, element: Any, inference_args: Any) -> Any:
        """Returns the predictions of a batch."""
        if self._loaded is None:
            # A time limit includes loading, and it holds for `process`.
            self._loaded = self._shared.acquire(self._load)
        began = self._time_ns()
        try:
            made = self._handler.run_inference(element, self._loaded.model, inference_args)
            predictions = list(made)
        except BaseException:
            if self._metrics is not None:
                self._metrics.failed_batches.inc()
            raise
        if self._metrics is not None:
            micros = (self._time_ns() - began) // 1_000
            self._metrics.count(len(element), self._handler.get_num_bytes(element), micros)
        return predictions

    def _load(self) -> _Loaded:
        began, before = self._time_ns(), _memory_bytes()
        model = self._handler.load_model()
        if self._metrics is not None:
            millis = (self._time_ns() - began) // 1_000_000
            self._metrics.load_millis.update(millis)
            self._metrics.model_bytes.update(_memory_bytes() - before)
        return _Loaded(model)


class ModelMetrics:
    """The metrics of a model, with Beam's names."""

    def __init__(self, namespace: str) -> None:
        self._inferences = Metrics.counter(namespace, "num_inferences")
        self.failed_batches = Metrics.counter(namespace, "failed_batches_counter")
        self._sizes = Metrics.distribution(namespace, "inference_request_batch_size")
        self._bytes = Metrics.distribution(namespace, "inference_request_batch_byte_size")
        self._micros = Metrics.distribution(namespace, "inference_batch_latency_micro_secs")
        self.model_bytes = Metrics.distribution(namespace, "model_byte_size")
        self.load_millis = Metrics.distribution(namespace, "load_model_latency_milli_secs")

    def count(self, examples: int, size_bytes: int, micros: int) -> None:
        """Counts a batch."""
        self._micros.update(micros)
        self._inferences.inc(examples)
        self._sizes.update(examples)
        self._bytes.update(size_bytes)


def _time_ns() -> int:
    return system_clock.micros() * 1_000


def _memory_bytes() -> int:
    """The maximum memory that the process has had: kibibytes on Linux, bytes on macOS."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
