"""Beam's coders: those that a program registers for its own keys and elements, and the coders of its states."""

from __future__ import annotations

from typing import Any, ClassVar

from apache_beam.coders import RowCoder
from apache_beam.coders import registry as beams_registry
from apache_beam.io.iobase import BoundedSource
from apache_beam.typehints.typehints import TypeConstraint
from apache_beam.utils.sharded_key import ShardedKey

from penstock.coders.base import Coder
from penstock.coders.deterministic import decode_key, encode_key
from penstock.coders.typecoders import registry


class CoderAdapter(Coder):
    """A Beam coder as penstock's; each class of objects has a subclass."""

    beams: ClassVar[Any]

    def encode(self, value: object) -> bytes:
        encoded: bytes = self.beams.encode(value)
        return encoded

    def decode(self, encoded: bytes) -> object:
        return self.beams.decode(encoded)

    def is_deterministic(self) -> bool:
        return bool(self.beams.is_deterministic())

    def as_deterministic_coder(self, step_label: str, error_message: str | None = None) -> Coder:
        """Returns Beam's deterministic coder in place of this one, or this one; ValueError if there is none."""
        return make_adapter_class(self.beams.as_deterministic_coder(step_label, error_message))()


class ShardedKeyCoder(Coder):
    """A coder of keys that are spread over shards, as Beam's `GroupIntoBatches.WithShardedKey` makes them."""

    def encode(self, value: ShardedKey) -> bytes:
        return encode_key((value.key, value._shard_id))

    def decode(self, encoded: bytes) -> ShardedKey:
        return ShardedKey(*decode_key(encoded))

    def is_deterministic(self) -> bool:
        return True


def register_beam_coders() -> None:
    """Makes penstock use the coders that the program has registered with Beam.

    They stay registered, as they do with Beam. Rows are left out: penstock encodes them by their fields itself.
    """
    for kind, coder_class in beams_registry.get_custom_type_coder_tuples(beams_registry.custom_types):
        # Beam itself registers coders for type hints and for sources, which are never elements.
        is_element = isinstance(kind, type) and not issubclass(kind, TypeConstraint | BoundedSource)
        if is_element and not issubclass(coder_class, RowCoder):
            registry.register_coder(kind, make_adapter_class(beams_registry.get_coder(kind)))
    # Beam chooses the coder of these keys by their type hint, and not by their class.
    registry.register_coder(ShardedKey, ShardedKeyCoder)


def make_adapter_class(beams: object) -> type[CoderAdapter]:
    """Returns a class for a Beam coder, with the name of that coder, by which checkpoints and errors know it."""
    kind = type(beams)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (CoderAdapter,), {"beams": beams, **names})
