"""Functions of elements that are compiled from expressions of their fields, for dicts and for other objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.scalars.python_writer import PythonWriter, compiled_code
from penstock.scalars.tree import Scalar
from penstock.where import GENERATED_FILE


def compile_element_function(
    scalars: Sequence[Scalar], write: Callable[[PythonWriter], str], names: Mapping[str, Any] | None = None
) -> Callable[[Any], Any]:
    """Returns a function of ``element`` whose result is the value of a text.

    Args:
        scalars: The expressions of fields in the text.
        write: Writes the text.
        names: The values that the text names, besides those that the writer names.
    """
    known: dict[str, Any] = {"__name__": __name__, **(names or {})}
    of_items, of_attributes = (PythonWriter("element", known, is_dict) for is_dict in (True, False))
    lines = [_body(writer, scalars, write, indent) for writer, indent in ((of_items, 8), (of_attributes, 4))]
    text = f"def result(element):\n    if isinstance(element, dict):\n{lines[0]}{lines[1]}"
    # Errors look for the user's line above code that is named so.
    exec(
        compiled_code("\n".join([*of_items.definitions, *of_attributes.definitions, text]), GENERATED_FILE),
        known,
    )
    function: Callable[[Any], Any] = known["result"]
    return function


def _body(
    writer: PythonWriter, scalars: Iterable[Scalar], write: Callable[[PythonWriter], str], indent: int
) -> str:
    writer.divide(scalars)
    return "".join(f"{' ' * indent}{line}\n" for line in writer.body(lambda: write(writer)))
