"""Handlers of examples with keys: one model for all of them, or models by key."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from penstock.error import noun_for, refusal
from penstock.ml.inference.handlers import (
    ExampleT,
    ModelHandler,
    ModelT,
    PredictionT,
    WrappingModelHandler,
)

KeyT = TypeVar("KeyT")


@dataclass(frozen=True)
class KeyModelMapping(Generic[KeyT, ExampleT, PredictionT, ModelT]):
    """The handler of the examples of some keys (Beam's name)."""

    keys: list[KeyT]
    mh: ModelHandler[ExampleT, PredictionT, ModelT]


class KeyedModelHandler(WrappingModelHandler):
    """A handler of pairs of a key and an example; it keeps the key with the prediction (Beam's ``KeyedModelHandler``).

    Args:
        unkeyed: The handler of the examples; or a list of `KeyModelMapping`, whose keys each belong to one of them.
        max_models_per_worker_hint: If there are several models, how many a worker process holds at a time: the least
            recently used one is removed first. None for all of them.

    Raises:
        ValueError: If a handler has functions before or after it, a mapping has no key, or a key has two handlers.

    >>> class Adding(ModelHandler):
    ...     def load_model(self):
    ...         return 1
    ...     def run_inference(self, batch, model, inference_args=None):
    ...         return [model + example for example in batch]
    >>> list(KeyedModelHandler(Adding()).run_inference([("a", 1), ("b", 2)], 1))
    [('a', 2), ('b', 3)]
    """

    def __init__(
        self,
        unkeyed: ModelHandler[Any, Any, Any] | list[KeyModelMapping[Any, Any, Any, Any]],
        max_models_per_worker_hint: int | None = None,
    ) -> None:
        if isinstance(unkeyed, ModelHandler):
            if max_models_per_worker_hint is not None:
                what = "max_models_per_worker_hint is given, and there is one model"
                raise refusal(ValueError, what, hint="leave it out, or pass a list of handlers")
            super().__init__(_without_functions(unkeyed))
            return
        super().__init__(HandlersByKey(unkeyed, max_models_per_worker_hint))

    def run_inference(
        self, batch: Sequence[Any], model: Any, inference_args: dict[str, Any] | None = None
    ) -> Iterable[Any]:
        if isinstance(self._base, HandlersByKey):
            return self._base.run_inference(batch, model, inference_args)
        keys, examples = zip(*batch, strict=True)
        return zip(keys, self._base.run_inference(examples, model, inference_args), strict=False)

    def get_num_bytes(self, batch: Sequence[Any]) -> int:
        if isinstance(self._base, HandlersByKey):
            return self._base.get_num_bytes(batch)
        keys, examples = zip(*batch, strict=True)
        return len(pickle.dumps(keys)) + self._base.get_num_bytes(examples)


class MaybeKeyedModelHandler(WrappingModelHandler):
    """A `KeyedModelHandler` for examples with or without keys (Beam's name).

    Either all elements are tuples of a key and an example, or none is.
    """

    def __init__(self, unkeyed: ModelHandler[Any, Any, Any]) -> None:
        super().__init__(_without_functions(unkeyed))
        self._keyed = KeyedModelHandler(unkeyed)

    def run_inference(
        self, batch: Sequence[Any], model: object, inference_args: dict[str, Any] | None = None
    ) -> Iterable[Any]:
        handler = self._keyed if isinstance(batch[0], tuple) else self._base
        return handler.run_inference(batch, model, inference_args)

    def get_num_bytes(self, batch: Sequence[Any]) -> int:
        handler = self._keyed if isinstance(batch[0], tuple) else self._base
        return handler.get_num_bytes(batch)


class HandlersByKey(ModelHandler[Any, Any, Any]):
    """Several handlers; its model is a `Models`."""

    def __init__(
        self, mappings: Sequence[KeyModelMapping[Any, Any, Any, Any]], max_models: int | None
    ) -> None:
        super().__init__()
        if not mappings:
            raise refusal(ValueError, "there is no model handler", hint="pass one for some keys")
        if max_models is not None and max_models < 1:
            what = f"max_models_per_worker_hint is {max_models}"
            raise refusal(ValueError, what, hint="use 1 or more")
        self._handlers = [_without_functions(mapping.mh) for mapping in mappings]
        self._number_of_key: dict[Any, int] = {}
        self._max_models = max_models or len(self._handlers)
        for number, mapping in enumerate(mappings):
            _check_alone(mapping.mh)
            if not mapping.keys:
                what = f"{noun_for(mapping.mh)} has no keys"
                raise refusal(ValueError, what, hint="name the keys of its examples")
            for key in mapping.keys:
                if key in self._number_of_key:
                    what = f"the key {key!r} maps to two model handlers"
                    raise refusal(ValueError, what, hint="map each key to one")
                self._number_of_key[key] = number

    def load_model(self) -> Models:
        return Models(self._handlers, self._max_models)

    def run_inference(
        self, batch: Sequence[Any], model: Models, inference_args: dict[str, Any] | None = None
    ) -> Iterator[Any]:
        for key, number, examples in self._by_key(batch):
            made = self._handlers[number].run_inference(examples, model.get(number), inference_args)
            for prediction in made:
                yield key, prediction

    def get_num_bytes(self, batch: Sequence[Any]) -> int:
        keys = [key for key, _ in batch]
        by_key = self._by_key(batch)
        return len(pickle.dumps(keys)) + sum(
            self._handlers[number].get_num_bytes(examples) for _, number, examples in by_key
        )

    def get_metrics_namespace(self) -> str:
        return "BeamML_KeyedModels"

    def validate_inference_args(self, inference_args: dict[str, Any] | None) -> None:
        for handler in self._handlers:
            handler.validate_inference_args(inference_args)

    def share_model_across_processes(self) -> bool:
        return any(handler.share_model_across_processes() for handler in self._handlers)

    def _by_key(self, batch: Sequence[Any]) -> list[tuple[Any, int, list[Any]]]:
        """Returns each key with the number of its handler and its examples, so that each model is used at one time."""
        examples: dict[Any, list[Any]] = {}
        for key, example in batch:
            examples.setdefault(key, []).append(example)
        unknown = [key for key in examples if key not in self._number_of_key]
        if unknown:
            what = f"{len(unknown)} keys of a batch have no model handler"
            raise refusal(ValueError, what, hint="map every key to a handler, or filter the examples first")
        found = [(key, self._number_of_key[key], own) for key, own in examples.items()]
        return sorted(found, key=lambda each: each[1])


class Models:
    """The models of several handlers, which are loaded when they are first used."""

    def __init__(self, handlers: Sequence[ModelHandler[Any, Any, Any]], most: int) -> None:
        self._handlers = handlers
        self._most = most
        self._loaded: OrderedDict[int, Any] = OrderedDict()

    def get(self, number: int) -> Any:
        """Returns the model of a handler; if needed, removes the least recently used one."""
        if number not in self._loaded:
            while len(self._loaded) >= self._most:
                self._loaded.popitem(last=False)
            self._loaded[number] = self._handlers[number].load_model()
        self._loaded.move_to_end(number)
        return self._loaded[number]


def _without_functions(handler: ModelHandler[Any, Any, Any]) -> ModelHandler[Any, Any, Any]:
    if handler.get_preprocess_fns() or handler.get_postprocess_fns():
        what = f"{noun_for(handler)} inside of a keyed handler has functions before or after it"
        hint = "call with_preprocess_fn and with_postprocess_fn of the keyed handler"
        raise refusal(ValueError, what, hint=hint)
    return handler


def _check_alone(handler: ModelHandler[Any, Any, Any]) -> None:
    """Refuses settings of the whole step, which one of several handlers cannot make."""
    said: Mapping[str, Any] = {
        "arguments of batches": handler.batch_elements_kwargs(),
        "resource hints": handler.get_resource_hints(),
        "environment variables": getattr(handler, "_env_vars", {}),
    }
    for name, value in said.items():
        if value:
            what = f"{noun_for(handler)} that shares a step with other handlers has {name}"
            hint = "override the method of the KeyedModelHandler, which holds for all its models"
            raise refusal(ValueError, what, hint=hint)
