"""Finds what a program names of a module without importing it: another module, or an error with a hint.

An import of a module or name of Beam that is left out fails like the import of anything absent, with a hint. So does a
name of a module, or in a module, that is like another one.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from opcode import opmap
from types import FrameType, ModuleType
from typing import Any

from penstock.checks.similar_names import find_nearest
from penstock.error import three_parts
from penstock.where import here

_PACKAGE = "penstock."
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
_NAMED_AS_ATTRIBUTES = {
    "penstock.coders": (),
    "penstock.options": ("pipeline_options_validator",),
    "penstock.runners": (),
    "penstock.transforms": (
        "display",
        "ptransform",
        "resources",
        "sideinputs",
        "timeutil",
        "userstate",
        "util",
    ),
    "penstock.typehints": ("batch", "schema_registry", "schemas"),
    "penstock.utils": ("histogram", "shared"),
    "penstock.utils.retry": (),
    "penstock.utils.windowed_value": (),
}
"""The modules that Beam loads at once, so that ``beam.transforms.util`` needs no import. Here they load when named.
A name that such a package does not have is refused with a hint."""


_WHERE_NAMES_ARE = (
    "penstock",
    "penstock.io",
    "penstock.transforms.window",
    "penstock.transforms.trigger",
    "penstock.transforms.util",
    "penstock.pvalue",
    "penstock.options.pipeline_options",
    "penstock.testing.util",
    "penstock.utils.timestamp",
    "penstock.io.database",
    "penstock.io.delta",
    "penstock.io.iceberg",
    "penstock.io.kafka",
    "penstock.io.postgres_changes",
)
"""The modules in which a name is looked for that is asked of another one."""

_LIKENESS = 0.75
"""Says how much a name has to be like another one, from 0 to 1, to be what the program means."""


class AbsentModules:
    """The last finder, asked when no other has found a module. It finds nothing, but may add a hint to the error.

    `importlib.util.find_spec`, `hasattr` and ``except ImportError`` answer the same as for any absent module.
    """

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None, or the error if an import statement asks for a name that is left out."""
        if not fullname.startswith(_PACKAGE):
            return None
        callers = set(_import_system())
        package, _, name = fullname.rpartition(".")
        hint = _hint(fullname)
        if hint is None:
            hint = (
                _near_hint(package, name)
                if "_handle_fromlist" in callers
                else _near_module(package, name, path)
            )
        if hint is None or "_find_and_load" not in callers:
            return None
        if "_handle_fromlist" in callers:
            # The caller would replace a ModuleNotFoundError with an error without a hint.
            raise _no_name(package, name, hint)
        what = f"No module named {fullname!r}"
        raise ModuleNotFoundError(three_parts(what, where=here(), hint=hint), name=fullname)


def _no_name(module: str, name: str, hint: str) -> ImportError:
    what = f"cannot import name {name!r} from {module!r}"
    return ImportError(three_parts(what, where=here(), hint=hint), name=module)


def _hint(name: str) -> str | None:
    if name.rpartition(".")[2].startswith("_"):
        # Python asks every module for its `__path__` whenever something is imported from it.
        return None
    from penstock.left_out import instead_of

    instead = instead_of(name)
    if instead is None:
        return None
    yet = " yet" if instead.startswith("not yet: ") else ""
    advice = instead.removeprefix("not yet: ").removeprefix("not our business: ")
    return f"Beam has it, and penstock does not{yet}; {advice}"


def _near_hint(module: str, name: str) -> str | None:
    """The hint at a name that another name of the module, or a name of another module, is like."""
    if name.startswith("_"):
        return None
    places = (*reversed(_WHERE_NAMES_ARE), module)
    homes = {known: home for home in places for known in _public_names(home)}
    near = find_nearest(name, homes, _LIKENESS)
    if near is None:
        return _hint_at_module(f"{module}.{name}")
    if near == name:
        return f"import it from {homes[near]}"
    return f"did you mean {near}?" if homes[near] == module else f"did you mean {near}, of {homes[near]}?"


def _hint_at_module(name: str) -> str | None:
    """The hint at a module that is there, but that nothing has imported."""
    package, _, _ = name.rpartition(".")
    if not hasattr(sys.modules.get(package), "__path__") or importlib.util.find_spec(name) is None:
        return None
    return f"import it: import {name}"


def _near_module(package: str, name: str, path: Sequence[str] | None) -> str | None:
    """The hint at a module of a package that the name is like."""
    if path is None or name.startswith("_"):
        return None
    import pkgutil

    near = find_nearest(name, (each.name for each in pkgutil.iter_modules(path)), _LIKENESS)
    return None if near is None else f"did you mean {package}.{near}?"


def _public_names(module: str) -> Sequence[str]:
    found = importlib.import_module(module)
    return getattr(found, "__all__", None) or [name for name in vars(found) if not name.startswith("_")]


def make_attribute_error(module: str, name: str) -> AttributeError:
    """The error about a name that a module does not have, with a hint if Beam has the name, or a name like it is known.

    >>> print(make_attribute_error("penstock.io", "ReadFromMongoDB"))
    module 'penstock.io' has no attribute 'ReadFromMongoDB'
      at ...
      hint: Beam has it, and penstock does not; Spark reads ...
    """
    what = f"module {module!r} has no attribute {name!r}"
    hint = _hint(f"{module}.{name}") or _near_hint(module, name)
    # With a module, Python adds a guess of its own after the text.
    guessed_from = None if hint else sys.modules.get(module)
    return AttributeError(three_parts(what, where=hint and here(), hint=hint), name=name, obj=guessed_from)


def _import_system() -> Iterator[str]:
    """The functions of the import system on the stack, up to the code that imports the module."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == _IMPORT_SYSTEM:
        yield frame.f_code.co_name
        if frame.f_back is None:
            return
        frame = frame.f_back


def _is_import(frame: FrameType) -> bool:
    """True if a frame executes ``from module import name``."""
    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


def _modules_of(package: str, names: Sequence[str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package or a module."""

    def imported(name: str) -> ModuleType:
        if name in names:
            return importlib.import_module(f"{package}.{name}")
        hint = _hint(f"{package}.{name}") or _near_hint(package, name)
        if hint is not None and _is_import(sys._getframe(1)):
            # The statement would replace an AttributeError with an error without a hint.
            raise _no_name(package, name, hint)
        raise make_attribute_error(package, name)

    return imported


def hint_at_absent_names(module: dict[str, Any]) -> None:
    """Makes a module refuse, with a hint, a name that only Beam's module has.

    Args:
        module: What it calls ``globals()``, in its last line.
    """
    module["__getattr__"] = _modules_of(module["__name__"], ())


def install() -> None:
    """Puts the finder after all others, once, and lets packages load modules that a program names."""
    if AbsentModules not in sys.meta_path:
        sys.meta_path.append(AbsentModules)
    for package, names in _NAMED_AS_ATTRIBUTES.items():
        vars(importlib.import_module(package))["__getattr__"] = _modules_of(package, names)
