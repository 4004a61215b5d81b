"""What is said about a ``process`` that is missing, or whose returns most likely are not meant so."""

from __future__ import annotations

import ast
import inspect
import logging
import textwrap
import types
from collections.abc import Iterator
from typing import Any

from penstock.error import three_parts
from penstock.typehints.code_reading import read

_LOGGER = logging.getLogger(__name__)


def check_process(transform: Any) -> None:
    """Checks that the DoFn of a ParDo has something to do.

    Raises:
        TypeError: If it has neither ``process`` nor ``process_batch``.
    """
    dofn = transform.fn
    if not dofn._process_defined and not dofn._process_batch_defined:
        raise TypeError(
            three_parts(
                f"{type(dofn).__name__} defines no process method",
                where=transform._where(),
                hint="def process(self, element): yield ...",
            )
        )


def warn_of_returns(dofn: Any) -> None:
    """Logs a warning if ``process`` yields and returns a value, which is lost, or has a ``return None``.

    Args:
        dofn: A DoFn.
    """
    function = getattr(dofn.process, "__func__", None)
    if not isinstance(function, types.FunctionType):
        return
    if function.__code__.co_flags & inspect.CO_GENERATOR:
        if _returns(function, something=True):
            _LOGGER.warning(
                "Using yield and return in the process method of %s: what it returns is lost; yield it",
                type(dofn),
            )
    elif _returns(function, something=False) and _says_return_none(function):
        _LOGGER.warning(
            "Process method returned None (element won't be emitted): %s. Check if intended.", type(dofn)
        )


def _returns(function: types.FunctionType, something: bool) -> bool:
    """Whether a function has a return of something, or of None; at its end there is one of None."""
    before = None
    for operation in read(function.__code__).operations:
        if operation.opname == "RETURN_CONST":
            if (operation.argval is not None) == something:
                return True
        elif operation.opname == "RETURN_VALUE":
            is_none = before is not None and before.opname == "LOAD_CONST" and before.argval is None
            if is_none != something:
                return True
        before = operation
    return False


def _says_return_none(function: types.FunctionType) -> bool:
    """Whether the source has it in so many words: a bare ``return`` leaves out an element on purpose."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        # The source is not there, or is a part of a line.
        return False
    statements = (each for each in _statements_of(tree.body[0]) if isinstance(each, ast.Return))
    return any(isinstance(each.value, ast.Constant) and each.value.value is None for each in statements)


def _statements_of(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a function, but not in those inside of it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield child
            yield from _statements_of(child)
