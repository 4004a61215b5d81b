"""A DoFn around another one, which shows the inner one's parameters, types and life cycle."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from types import MethodType
from typing import Any

from penstock.functions.combinefn import CombineFn
from penstock.functions.dofn import DoFn
from penstock.functions.signature import MethodSignature, signature_of
from penstock.typehints.io_hints import IOTypeHints

_AROUND_ELEMENTS = ("setup", "start_bundle", "finish_bundle")
_SEEN_OF_A_CONTAINER = 100
"""The number of items of a container that are searched: functions are in small ones, large ones hold data."""


def find_functions(function: object) -> dict[int, Any]:
    """Returns a DoFn or CombineFn and those that it calls, by identity.

    >>> from penstock.functions.combinefn import DefaultingCombineFn
    >>> total = CombineFn.from_callable(sum)
    >>> id(total) in find_functions(DefaultingCombineFn(total))
    True
    """
    found: dict[int, Any] = {}
    pending = [function]
    while pending:
        match pending.pop():
            case MethodType() as method:
                pending.append(method.__self__)
            case functools.partial() as partial:
                pending.append(partial.func)
            case list() | tuple() as items:
                pending.extend(itertools.islice(items, _SEEN_OF_A_CONTAINER))
            case DoFn() | CombineFn() as inner if id(inner) not in found:
                found[id(inner)] = inner
                pending.extend(vars(inner).values())
    return found


class WrappingDoFn(DoFn):
    """The base of DoFns that call the ``process`` of another one."""

    def __init__(self, dofn: DoFn) -> None:
        super().__init__()
        self.dofn = dofn
        # It may have outputs of its own, so it never declares `emits_insertions_only`.
        self.accepts_retractions = dofn.accepts_retractions
        self.emits_retractions = dofn.emits_retractions
        # The runner looks at the methods of this object, so those that do nothing inside must not show here.
        signature = signature_of(dofn)
        for name in _AROUND_ELEMENTS:
            if getattr(signature, name):
                setattr(self, name, getattr(dofn, name))

    def teardown(self) -> Any:
        """Returns the result of the inner DoFn's ``teardown``: a coroutine, if it is asynchronous."""
        return self.dofn.teardown()

    @property
    def concurrency_max(self) -> int:
        return self.dofn.concurrency_max

    def process_signature(self) -> MethodSignature:
        return self.dofn.process_signature()

    def timer_owner(self) -> Any:
        return self.dofn.timer_owner()

    def infer_output_type(self, input_type: object) -> object:
        return self.dofn.infer_output_type(input_type)

    def default_type_hints(self) -> IOTypeHints:
        return self.dofn.get_type_hints()

    def argspec_of_process(self) -> Callable[..., Any]:
        return self.dofn.argspec_of_process()
