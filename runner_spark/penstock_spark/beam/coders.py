"""Coders that a program has registered with Beam, for keys and elements of its own classes."""

from __future__ import annotations

from typing import Any, ClassVar

from apache_beam.coders import RowCoder
from apache_beam.coders import registry as beams_registry
from apache_beam.typehints.typehints import TypeConstraint

from penstock.coders.base import Coder
from penstock.coders.typecoders import registry


class HostedCoder(Coder):
    """A coder of Beam's; there is a subclass for each class of objects."""

    beams: ClassVar[Any]

    def encode(self, value: Any) -> bytes:
        return bytes(self.beams.encode(value))

    def decode(self, encoded: bytes) -> Any:
        return self.beams.decode(encoded)

    def is_deterministic(self) -> bool:
        return bool(self.beams.is_deterministic())


def register_beams_coders() -> None:
    """Has penstock use the coders that the program has registered with Beam.

    Rows are left out: penstock encodes them by their fields itself.
    """
    for kind, coder_class in beams_registry.get_custom_type_coder_tuples(beams_registry.custom_types):
        # Beam itself registers coders for types of hints, which are no types of elements.
        is_hint = not isinstance(kind, type) or issubclass(kind, TypeConstraint)
        if not is_hint and not issubclass(coder_class, RowCoder):
            inside = {"beams": beams_registry.get_coder(kind)}
            registry.register_coder(kind, type(f"CoderOf{kind.__name__}", (HostedCoder,), inside))
