"""Imports of Beam's modules that are left out: they fail as for any absent module, and say what to do instead."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from penstock.error import three_parts

_PACKAGE = "penstock."
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


class AbsentModules:
    """The last finder: asked for what no other has found. It finds nothing, but may give the import's error a hint.

    `importlib.util.find_spec`, `hasattr` and ``except ImportError`` tell the same as of any absent module.
    """

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None, or the error of the import that asks.

        Raises:
            ModuleNotFoundError: An import statement names a module that is left out.
            ImportError: One imports such a name from a package.
        """
        if not fullname.startswith(_PACKAGE):
            return None
        callers = set(_import_system())
        hint = _hint(fullname)
        if hint is None or "_find_and_load" not in callers:
            return None
        package, _, name = fullname.rpartition(".")
        if "_handle_fromlist" in callers:
            # A ModuleNotFoundError would be swallowed here, for an error that does not say what to do.
            raise ImportError(
                three_parts(f"cannot import name {name!r} from {package!r}", hint=hint), name=package
            )
        raise ModuleNotFoundError(three_parts(f"No module named {fullname!r}", hint=hint), name=fullname)


def _hint(name: str) -> str | None:
    from penstock.left_out import instead_of

    instead = instead_of(name)
    return None if instead is None else f"Beam has it, and penstock does not; {instead}"


def no_attribute(module: str, name: str) -> AttributeError:
    """The error about a name that a module does not have; if it is one of Beam's, with what to do instead.

    >>> print(no_attribute("penstock.io", "ReadFromAvro"))
    module 'penstock.io' has no attribute 'ReadFromAvro'
      hint: Beam has it, and penstock does not; not yet: Spark's format `avro` ...
    """
    what = f"module {module!r} has no attribute {name!r}"
    return AttributeError(
        three_parts(what, hint=_hint(f"{module}.{name}")), name=name, obj=sys.modules.get(module)
    )


def _import_system() -> Iterator[str]:
    """The functions of the import system that have called for a module, up to the code that imports it."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == _IMPORT_SYSTEM:
        yield frame.f_code.co_name
        if frame.f_back is None:
            return
        frame = frame.f_back


def install() -> None:
    """Puts the finder after all others, once."""
    if AbsentModules not in sys.meta_path:
        sys.meta_path.append(AbsentModules)
