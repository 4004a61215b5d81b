"""The classes that keys belong to: how an encoded key names its class, and how the class is found again."""

from __future__ import annotations

import importlib
from typing import TypeVar

from penstock.error import three_parts

_classes: dict[bytes, type] = {}

ClassT = TypeVar("ClassT", bound=type)


def register_key_class(cls: ClassT) -> ClassT:
    """Makes a class known to `penstock.coders.deterministic.decode_key` in this process; usable as a
    decorator.

    A key holds only the name of its class, ``module:qualified name``. Classes that can be imported under that
    name need no registration. Classes of ``__main__`` or of a function's body cannot be imported in another
    process, so a runner sends `key_classes` along with the functions and registers them wherever keys are
    decoded. The class registered last under a name wins, so that a cell of a notebook can be run again.

    Args:
        cls: Any class whose instances are keys.

    Returns:
        The class itself.

    >>> from typing import NamedTuple
    >>> @register_key_class
    ... class Player(NamedTuple):
    ...     team: str
    """
    _classes[name_of(cls)] = cls
    return cls


def key_classes() -> tuple[type, ...]:
    """The classes known in this process that another process could not import under their names.

    These are what a runner has to send to the processes that decode keys.

    Returns:
        Classes that were registered, or whose instances were encoded, in this process.
    """
    return tuple(cls for name, cls in _classes.items() if _import(name) is not cls)


def name_of(cls: type) -> bytes:
    """The name of a class in an encoded key.

    >>> name_of(int)
    b'builtins:int'
    """
    return f"{cls.__module__}:{cls.__qualname__}".encode()


def class_named(name: bytes) -> type:
    """The class that an encoded key names.

    Raises:
        LookupError: The name can neither be imported nor is it registered in this process.

    >>> class_named(b"builtins:int")
    <class 'int'>
    """
    found = _classes.get(name)
    if found is None:
        found = _import(name)
        if found is None:
            raise LookupError(
                three_parts(
                    f"the class {name.decode()!r} of a key cannot be found in this process",
                    hint="move the class to a module that the workers can import, or call "
                    "penstock.coders.deterministic.register_key_class(cls) there",
                )
            )
        _classes[name] = found
    return found


def _import(name: bytes) -> type | None:
    module_name, _, path = name.decode().partition(":")
    try:
        # A worker's own __main__ is another program, so a class that is found in it may be a different one.
        module = None if module_name == "__main__" else importlib.import_module(module_name)
    except ImportError:
        module = None
    found: object = module
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None
