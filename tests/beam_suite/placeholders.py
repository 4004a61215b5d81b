"""What stands in a ported test module for names that penstock does not have: only the tests that use one fail."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Iterator
from typing import Any

__all__ = ["Missing", "MissingName", "loading", "taken"]

loading = [0]
"""How many modules are being loaded; as long as there are any, a missing name may be called, as decorators are."""


class MissingName(AttributeError):
    """A test used a name that penstock does not have.

    Args:
        missing_path: The name.
    """

    def __init__(self, missing_path: str) -> None:
        super().__init__(f"penstock has no {missing_path}")
        self.missing_path = missing_path

    def __reduce__(self) -> tuple[Any, ...]:
        return MissingName, (self.missing_path,)


class Missing:
    """A name of Beam's that penstock does not have.

    It has every attribute and may be a base class, so that a module that names it loads. Calling it in a test
    raises `MissingName`.
    """

    def __init__(self, path: str) -> None:
        self.__dict__["path"] = path

    def __getattr__(self, name: str) -> Missing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self.path}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not loading[0]:
            raise MissingName(self.path)
        return args[0] if len(args) == 1 and not kwargs and callable(args[0]) else self

    def __getitem__(self, item: Any) -> Missing:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __mod__(self, values: Any) -> str:
        return repr(self)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return ()

    def __instancecheck__(self, instance: Any) -> bool:
        raise MissingName(self.path)

    def __enter__(self) -> Any:
        raise MissingName(self.path)

    def __exit__(self, *_: Any) -> None:
        """Is never reached; it makes `__enter__` the one that is asked."""

    def __index__(self) -> int:
        raise MissingName(self.path)

    def __int__(self) -> int:
        raise MissingName(self.path)

    def __reduce__(self) -> tuple[Any, ...]:
        return Missing, (self.path,)

    def __repr__(self) -> str:
        return f"<missing: {self.path}>"


def taken(module: str, name: str | None = None) -> Any:
    """A module, or a name of one, as an import gives it; a `Missing` where penstock has none."""
    try:
        found = importlib.import_module(module)
        if name is None:
            return found
        return operator.attrgetter(name)(found)
    except (ImportError, AttributeError):
        pass
    path = module if name is None else f"{module}.{name}"
    try:
        return importlib.import_module(path)
    except ImportError:
        return Missing(path)
