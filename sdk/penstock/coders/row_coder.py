"""The coder of records: named tuples, dataclasses and rows, in the wire format of the row coder in Beam."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from penstock.coders.base import Coder, FastCoder, Registry, registry_in_use
from penstock.coders.coders import DecimalCoder, IterableCoder, MapCoder, NullableCoder
from penstock.coders.stream import InputStream, OutputStream
from penstock.error import refusal
from penstock.typehints import typehints
from penstock.typehints.constraints import Any as ANY
from penstock.typehints.row_type import RowTypeConstraint

__all__ = ["RowCoder"]


class RowCoder(FastCoder):
    r"""Records with named, typed fields (Beam's ``RowCoder``).

    A record is written as the number of its fields (VarInt), the number of bytes of a mask of the fields that are None
    (VarInt; 0 if none is), the mask (one bit for each field, low bits first), and the other fields in order, each by
    the coder of its type. Fields of types that Beam's schemas do not have are written by the registry's coder of the
    type.

    Args:
        schema: The type of the records: a NamedTuple class, a dataclass or a row type. (Beam takes a protocol buffer;
            use `from_type_hint` in code that runs on both.)
        force_deterministic: The label of the step that needs all fields to be deterministic; False if none does.

    Raises:
        TypeError: The schema is not a type of records.

    >>> from typing import NamedTuple
    >>> class Score(NamedTuple):
    ...     team: str
    ...     points: int
    >>> RowCoder(Score).encode(Score("red", 3))
    b'\x02\x00\x03red\x03'
    """

    pickles_as_it_is = True

    def __init__(self, schema: Any, force_deterministic: str | bool = False) -> None:
        self.schema = schema
        self.forced_deterministic = bool(force_deterministic)
        self._row = row = row_hint(schema)
        self._names = [name for name, _ in row.fields]
        self._nullable = [_is_nullable(hint) or hint == ANY or hint is type(None) for _, hint in row.fields]
        self.components = [_not_none_coder(hint) for _, hint in row.fields]
        if force_deterministic:
            label = str(force_deterministic)
            self.components = [coder.as_deterministic_coder(label) for coder in self.components]

    def encode_to_stream(self, value: object, stream: OutputStream, nested: bool) -> None:
        """Writes a record; ValueError if a field that must not be None is None."""
        parts = [getattr(value, name) for name in self._names]
        stream.write_var_int64(len(parts))
        mask = sum(1 << index for index, part in enumerate(parts) if part is None)
        stream.write(mask.to_bytes((len(parts) + 7) // 8, "little") if mask else b"", nested=True)
        for part, coder, nullable, name in zip(
            parts, self.components, self._nullable, self._names, strict=True
        ):
            if part is not None:
                coder.encode_to_stream(part, stream, True)
            elif not nullable:
                raise refusal(ValueError, f"the field {name!r} is None", hint="declare it Optional")

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        """Reads a record; fields that were added to the type since are None."""
        count = stream.read_var_int64()
        mask = int.from_bytes(stream.read_all(True), "little")
        parts = [
            None if mask >> index & 1 else coder.decode_from_stream(stream, True)
            for index, coder in enumerate(self.components[:count])
        ]
        parts += [None] * (len(self._names) - len(parts))
        return self._row.user_type(**dict(zip(self._names, parts, strict=True)))

    def is_deterministic(self) -> bool:
        return all(coder.is_deterministic() for coder in self.components)

    def as_deterministic_coder(self, step_label: str, error_message: str | None = None) -> Coder:
        """Returns the coder with deterministic coders of all fields; ValueError if one has none."""
        return self if self.is_deterministic() else RowCoder(self.schema, error_message or step_label)

    def to_type_hint(self) -> object:
        return self.schema

    @classmethod
    def from_type_hint(cls, typehint: object, registry: Registry) -> RowCoder:
        """Returns the coder of a type of records; TypeError for any other type."""
        return cls(typehint)

    def __repr__(self) -> str:
        return f"RowCoder[{', '.join(self._names)}]"


def row_hint(schema: object) -> RowTypeConstraint:
    """Returns a type of records as a row type; TypeError if it is not a NamedTuple class, dataclass or row type."""
    row = schema if isinstance(schema, RowTypeConstraint) else RowTypeConstraint.from_user_type(schema)
    if row is None:
        hint = "use a NamedTuple, a dataclass, or a row type with named fields"
        raise refusal(TypeError, f"{schema!r} is not a type of records", hint=hint)
    return row


def _is_nullable(hint: object) -> bool:
    return bool(typehints.is_nullable(hint))


def _coder(hint: object) -> Coder:
    coder = _not_none_coder(hint)
    return NullableCoder(coder) if _is_nullable(hint) else coder


def _not_none_coder(hint: object) -> Coder:
    registry = registry_in_use()
    if _is_nullable(hint):
        return _not_none_coder(typehints.get_concrete_type_from_nullable(hint))
    if getattr(hint, "value_class", hint) is Decimal:
        return DecimalCoder()
    if isinstance(hint, typehints.MappingTypeConstraint):
        return MapCoder(_coder(hint.key_type), _coder(hint.value_type))
    if isinstance(hint, typehints.SequenceTypeConstraint) and not isinstance(
        hint,
        typehints.SetTypeConstraint | typehints.FrozenSetTypeConstraint | typehints.TupleSequenceConstraint,
    ):
        return IterableCoder(_coder(hint.inner_type))
    if isinstance(hint, RowTypeConstraint):
        return registry.registered_coder(hint.user_type) or RowCoder(hint)
    return registry.get_coder(hint)
