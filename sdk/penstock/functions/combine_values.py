"""The DoFn that combines the values of one group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.functions.combinefn import CombineFn
from penstock.functions.dofn import DoFn
from penstock.typehints import typehints


class CombineValuesDoFn(DoFn):
    """Combines the values of one group (Beam's ``CombineValuesDoFn``)."""

    def __init__(self, input_pcoll_type: Any, combinefn: CombineFn, runtime_type_check: bool) -> None:
        super().__init__()
        self.combinefn = combinefn

    def setup(self) -> None:
        """See `CombineFn.setup`."""
        self.combinefn.setup()

    def process(self, element: Any, *args: Any, **kwargs: Any) -> Iterable[Any]:
        """The key with the result."""
        key, values = element
        fn = self.combinefn
        accumulator = fn.add_inputs(fn.create_accumulator(*args, **kwargs), values, *args, **kwargs)
        return [(key, fn.extract_output(fn.compact(accumulator, *args, **kwargs), *args, **kwargs))]

    def teardown(self) -> None:
        """See `CombineFn.teardown`."""
        self.combinefn.teardown()

    def default_type_hints(self) -> Any:
        """From groups of the CombineFn's input to pairs of the key and its output."""
        hints = self.combinefn.get_type_hints()
        key: Any = typehints.Any
        if hints.input_types:
            key = typehints.TypeVariable("K")
            args, kwargs = hints.input_types
            hints = hints.with_input_types(
                typehints.Tuple[key, typehints.Iterable[args[0]]], *args[1:], **kwargs
            )
        if hints.output_types:
            hints = hints.with_output_types(typehints.Tuple[key, hints.simple_output_type("")])
        return hints
