"""Sends the program's registrations (coders and classes of schemas) to the workers."""

from __future__ import annotations

import importlib
import logging
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from penstock.coders.base import Coder
from penstock.coders.deterministic import allow_pickled_keys
from penstock.error import refusal
from penstock.typehints.schema_registry import SCHEMA_REGISTRY

# The package has a value with the same name as this module.
_typecoders = importlib.import_module("penstock.coders.typecoders")

_LOGGER = logging.getLogger(__name__)

Registration = tuple[str, bytes]
"""A description of a registration; and, pickled, the function that registers it with its arguments."""

Preparation = tuple[Callable[..., None], tuple[Any, ...]]
"""A function that a worker can import, and its arguments."""

_preparations: ContextVar[tuple[Preparation, ...]] = ContextVar("preparations", default=())

_known: set[bytes] = set()
"""The registrations that this process made or has loaded: a worker runs many tasks of one program."""


@dataclass(frozen=True, eq=False)
class WithRegistrations:
    """A value that, when unpickled, first repeats the program's registrations.

    The registrations come first because objects in the value may need a registered coder.
    """

    registrations: tuple[Registration, ...]
    value: object
    # True if keys of any class are pickled: the option ``allow_non_deterministic_key_coders``.
    pickles_keys: bool = False
    preparations: tuple[Preparation, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _second, (_Loaded(self.registrations, self.pickles_keys, self.preparations), self.value)


@dataclass(frozen=True, eq=False)
class _Loaded:
    registrations: tuple[Registration, ...]
    pickles_keys: bool
    preparations: tuple[Preparation, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _load, (self.registrations, self.pickles_keys, self.preparations)


def _second(_: None, value: object) -> object:
    return value


def list_registered_objects() -> Iterator[Any]:
    """Yields the registered types and coders: a user's module may be needed only for them."""
    for kind, coder in _typecoders.registry.get_custom_type_coder_tuples():
        yield from (kind, coder)
    yield from _typecoders.registry.custom_fallbacks
    yield from SCHEMA_REGISTRY.get_registered_typings().values()


def pickle_registrations(dumps: Callable[[Any], bytes]) -> tuple[Registration, ...]:
    items = tuple((what, _pickle(what, dumps, call)) for what, call in _registrations())
    # A driver that unpickles its own programs has these already.
    _known.update(data for _, data in items)
    return items


def _registrations() -> Iterator[tuple[str, tuple[Any, ...]]]:
    for kind, coder in _typecoders.registry.get_custom_type_coder_tuples():
        yield f"the coder {_name(coder)} of {_name(kind)}", (_register_coder, kind, coder)
    for number, fallback in enumerate(_typecoders.registry.custom_fallbacks):
        yield f"the fallback coder {_name(fallback)}", (_register_fallback, number, fallback)
    for schema_id, kind in SCHEMA_REGISTRY.get_registered_typings().items():
        yield f"{_name(kind)}, the class of a schema", (_register_schema, schema_id, kind)


def _name(thing: object) -> str:
    return getattr(thing, "__qualname__", None) or repr(thing)


def _pickle(what: str, dumps: Callable[[Any], bytes], call: tuple[Any, ...]) -> bytes:
    try:
        return dumps(call)
    except Exception as error:
        raise refusal(
            RuntimeError,
            f"Unable to pickle {what}, which the workers need because it is registered: {error}",
            where="in the registry penstock.coders.registry",
            hint="open files, locks and connections in its methods, not outside of them",
        ) from error


@contextmanager
def prepare_workers(function: Callable[..., None], *arguments: object) -> Iterator[None]:
    """Within the block, runs begin whose workers call a function whenever they load a part of the program.

    It is for settings of a whole process, in which another program may have run before.
    """
    token = _preparations.set((*_preparations.get(), (function, arguments)))
    try:
        yield
    finally:
        _preparations.reset(token)


def preparations() -> tuple[Preparation, ...]:
    """Returns the functions that workers of a run that begins now call first."""
    return _preparations.get()


def _load(
    registrations: tuple[Registration, ...], pickles_keys: bool, preparations: tuple[Preparation, ...]
) -> None:
    allow_pickled_keys(pickles_keys)
    for prepare, arguments in preparations:
        prepare(*arguments)
    for what, data in registrations:
        if data not in _known:
            _known.add(data)
            try:
                register, *arguments = pickle.loads(data)
            except Exception as error:
                # A module is missing, or the driver made the class while it ran. Most pipelines do not
                # need everything that the modules of a program have registered.
                _LOGGER.warning("this worker cannot load %s: %s", what, error)
            else:
                register(*arguments)


def _register_coder(kind: object, coder: Coder) -> None:
    _typecoders.registry.register_coder(kind, coder)


def _register_fallback(number: int, coder: Coder) -> None:
    if len(_typecoders.registry.custom_fallbacks) <= number:
        _typecoders.registry.register_fallback_coder(coder)


def _register_schema(schema_id: str, kind: object) -> None:
    SCHEMA_REGISTRY.load_registered_typings({schema_id: kind})
