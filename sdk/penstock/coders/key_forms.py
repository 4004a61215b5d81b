"""How the keys that are not built-in values are written: named tuples, dataclasses, enums, times, windows,
rows.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import importlib
import struct
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from penstock.base.bounded_window import GlobalWindow, IntervalWindow
from penstock.base.row import Row
from penstock.error import three_parts
from penstock.utils.timestamp import Timestamp

_classes: dict[bytes, type] = {}

ClassT = TypeVar("ClassT", bound=type)


def register_key_class(cls: ClassT) -> ClassT:
    """Makes a class known to `penstock.coders.deterministic.decode_key` in this process; usable as a
    decorator.

    A key holds only the name of its class, ``module:qualified name``. Classes that can be imported under that
    name need no registration. Classes of ``__main__`` or of a function's body cannot be imported in another
    process, so a runner sends `key_classes` along with the functions and registers them wherever keys are
    decoded. The class registered last under a name wins, so that a cell of a notebook can be run again.

    Args:
        cls: Any class whose instances are keys.

    >>> from typing import NamedTuple
    >>> @register_key_class
    ... class Player(NamedTuple):
    ...     team: str
    """
    _classes[name_of(cls)] = cls
    return cls


def key_classes() -> tuple[type, ...]:
    """The classes known in this process that another process could not import under their names.

    These are what a runner has to send to the processes that decode keys.

    Returns:
        Classes that were registered, or whose instances were encoded, in this process.
    """
    return tuple(cls for name, cls in _classes.items() if _import(name) is not cls)


def name_of(cls: type) -> bytes:
    """The name of a class in an encoded key.

    >>> name_of(int)
    b'builtins:int'
    """
    return f"{cls.__module__}:{cls.__qualname__}".encode()


def class_named(name: bytes) -> type:
    """The class that an encoded key names.

    Raises:
        LookupError: The name can neither be imported nor is it registered in this process.

    >>> class_named(b"builtins:int")
    <class 'int'>
    """
    found = _classes.get(name)
    if found is None:
        found = _import(name)
        if found is None:
            raise LookupError(
                three_parts(
                    f"the class {name.decode()!r} of a key cannot be found in this process",
                    hint="move the class to a module that the workers can import, or call "
                    "penstock.coders.deterministic.register_key_class(cls) there",
                )
            )
        _classes[name] = found
    return found


def _import(name: bytes) -> type | None:
    module_name, _, path = name.decode().partition(":")
    try:
        # A worker's own __main__ is another program, so a class that is found in it may be a different one.
        module = None if module_name == "__main__" else importlib.import_module(module_name)
    except ImportError:
        module = None
    found: object = module
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


Encoder = Callable[[Any], bytes]
Decoder = Callable[[bytes], Any]

_pack_micros = struct.Struct(">q").pack
_pack_interval = struct.Struct(">qq").pack
_UUID_SAFETY = {None: b"", 0: b"\x00", -1: b"\xff"}
# The sizes that take one byte, ready made.
SHORT_SIZES = tuple(bytes([size]) for size in range(128))


def framed(parts: Iterable[bytes], head: bytes) -> bytes:
    r"""`head`, then each part after its size; a size is a base-128 number, low digits first, as Beam's VarInt
    is.

    >>> framed([b"ab", b""], b"(")
    b'(\x02ab\x00'
    """
    out = [head]
    for part in parts:
        size = len(part)
        if size < 128:
            out.append(SHORT_SIZES[size])
        else:
            out.append(long_size(size))
        out.append(part)
    return b"".join(out)


def long_size(size: int) -> bytes:
    """A size of 128 or more, as `framed` writes it."""
    digits = bytearray()
    while size > 127:
        digits.append(size & 127 | 128)
        size >>= 7
    digits.append(size)
    return bytes(digits)


def unframed(data: bytes, position: int) -> list[bytes]:
    r"""The parts that `framed` wrote, from `position` to the end.

    >>> unframed(b"(\x02ab\x00", 1)
    [b'ab', b'']
    """
    parts = []
    end = len(data)
    while position < end:
        size = data[position]
        position += 1
        if size > 127:
            size &= 127
            shift = 7
            while True:
                digit = data[position]
                position += 1
                size |= (digit & 127) << shift
                if digit < 128:
                    break
                shift += 7
        parts.append(data[position : position + size])
        position += size
    return parts


_REGISTER = (
    "use a tuple, a NamedTuple or a frozen dataclass of plain values, or register a "
    "deterministic coder with penstock.coders.registry.register_coder"
)


def refusal(kind: type, why: str = "", hint: str = _REGISTER) -> TypeError:
    """The error for a key whose type has no deterministic encoding.

    Args:
        kind: The type of the key, or of the part of it that is refused.
        why: A clause that says more, for types that are nearly right.
        hint: What to do.
    """
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return TypeError(
        three_parts(
            f"Unable to deterministically encode a key: keys of type {name} have no deterministic encoding"
            + (f": {why}" if why else ""),
            hint=hint,
        )
    )


def library_encoder(kind: type, encode_key: Encoder) -> Encoder | None:
    """The encoder of a class of the standard library or of penstock itself, by its name, so nothing is
    imported.
    """
    match f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}":
        case "penstock.Timestamp":
            return lambda value: b"t" + _pack_micros(value.micros)
        case "penstock.PreciseTimestamp":
            return _encode_precise
        case "penstock.IntervalWindow":
            return lambda value: b"w" + _pack_interval(value.start_micros, value.end_micros)
        case "penstock.GlobalWindow":
            return lambda value: b"g"
        case "penstock.Row":
            return lambda row: framed((encode_key(part) for item in vars(row).items() for part in item), b"r")
        case "decimal.Decimal":
            return lambda value: b"D" + str(value).encode()
        case "uuid.UUID":
            return lambda value: b"u" + value.bytes + _UUID_SAFETY[value.is_safe.value]
        case "datetime.date":
            return lambda value: b"y" + value.isoformat().encode()
        case "datetime.datetime":
            return lambda value: (
                b"m"
                + encode_key(
                    (value.replace(tzinfo=None, fold=0).isoformat(), value.fold, _zone_parts(value.tzinfo))
                )
            )
    return None


def _encode_precise(value: Any) -> bytes:
    # Timestamps that are equal are one key, whatever their precision.
    nanos: int = value.nanos
    if nanos % 1000:
        return b"T" + nanos.to_bytes(nanos.bit_length() // 8 + 1, "big", signed=True)
    return b"t" + _pack_micros(nanos // 1000)


def _zone_parts(zone: datetime.tzinfo | None) -> object:
    """A zone as plain values: a key of the zone database as a str, a fixed offset as (microseconds, name or
    None).
    """
    if zone is None:
        return None
    if type(zone) is datetime.timezone:
        offset = zone.utcoffset(None)
        nameless = datetime.timezone(offset)
        name = None if zone.tzname(None) == nameless.tzname(None) else zone.tzname(None)
        return (offset // datetime.timedelta(microseconds=1), name)
    key = getattr(zone, "key", None)
    if type(zone).__module__.startswith("zoneinfo") and isinstance(key, str):
        return key
    raise refusal(
        type(zone), "a datetime's zone must be a datetime.timezone or a zoneinfo.ZoneInfo with a key"
    )


def _zone(parts: Any) -> datetime.tzinfo | None:
    if parts is None:
        return None
    if isinstance(parts, str):
        import zoneinfo

        return zoneinfo.ZoneInfo(parts)
    offset = datetime.timedelta(microseconds=parts[0])
    return datetime.timezone(offset) if parts[1] is None else datetime.timezone(offset, parts[1])


def class_encoder(kind: type, encode_key: Encoder, base_with_coder: type | None = None) -> Encoder:
    """The encoder of a user's class that Beam encodes deterministically.

    These are enums, frozen dataclasses (their ``init`` fields), named tuples, and classes with
    ``__setstate__`` that do not define ``__reduce__``.

    Args:
        kind: The class.
        encode_key: Encodes the parts.
        base_with_coder: A base of it that a coder is registered for, for the error.

    Raises:
        TypeError: Beam has no deterministic encoding of this class either.
    """
    name = name_of(kind)
    if issubclass(kind, enum.Enum):
        head = framed([name], b"e")
        return lambda member: head + encode_key(member.value)
    if dataclasses.is_dataclass(kind):
        if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise refusal(kind, "the dataclass is not frozen")
        head = framed([name], b"d")
        fields = [field.name for field in dataclasses.fields(kind) if field.init]
        return lambda value: framed([encode_key(getattr(value, field)) for field in fields], head)
    if issubclass(kind, tuple) and hasattr(kind, "_fields") and hasattr(kind, "_make"):
        head = framed([name], b"n")
        return lambda value: framed(map(encode_key, value), head)
    if kind.__reduce__ is object.__reduce__ and hasattr(kind, "__setstate__"):
        head = framed([name], b"o")
        return lambda value: head + encode_key(value.__getstate__())
    if base_with_coder is not None:
        why = (
            f"the coder that is registered for {base_with_coder.__qualname__} is not used for derived classes"
        )
        raise refusal(kind, why, f"register a coder for {kind.__qualname__}, too")
    raise refusal(kind)


def decoders(decode_key: Decoder) -> dict[int, Decoder]:
    """The decoders of this module's forms, by the code of the tag they begin with."""

    def of_class(data: bytes) -> tuple[Any, int]:
        # A class's name is framed as a part is; names of more than 127 bytes take two or more bytes of size.
        end = 1
        size = shift = 0
        while True:
            digit = data[end]
            end += 1
            size |= (digit & 127) << shift
            shift += 7
            if digit < 128:
                break
        return class_named(bytes(data[end : end + size])), end + size

    def named_tuple(data: bytes) -> Any:
        cls, position = of_class(data)
        return cls._make(map(decode_key, unframed(data, position)))

    def dataclass(data: bytes) -> Any:
        cls, position = of_class(data)
        fields = [field for field in dataclasses.fields(cls) if field.init]
        values = dict(zip(fields, map(decode_key, unframed(data, position)), strict=True))
        positional = [value for field, value in values.items() if not field.kw_only]
        return cls(*positional, **{field.name: value for field, value in values.items() if field.kw_only})

    def enumeration(data: bytes) -> Any:
        cls, position = of_class(data)
        return cls(decode_key(data[position:]))

    def stateful(data: bytes) -> Any:
        cls, position = of_class(data)
        value: Any = cls.__new__(cls)
        value.__setstate__(decode_key(data[position:]))
        return value

    forms: dict[bytes, Decoder] = {
        b"n": named_tuple,
        b"d": dataclass,
        b"e": enumeration,
        b"o": stateful,
        b"r": lambda data: _row(list(map(decode_key, unframed(data, 1)))),
        b"m": lambda data: _datetime(*decode_key(data[1:])),
    }
    return {tag[0]: form for tag, form in (forms | _PLAIN_FORMS).items()}


def _row(parts: list[Any]) -> Any:
    return Row(**dict(zip(parts[::2], parts[1::2], strict=True)))


def _datetime(text: str, fold: int, zone: Any) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(fold=fold, tzinfo=_zone(zone))


def _timestamp(data: bytes) -> Any:
    return Timestamp.from_micros(int.from_bytes(data[1:], "big", signed=True))


def _precise_timestamp(data: bytes) -> Any:
    return Timestamp(subseconds=int.from_bytes(data[1:], "big", signed=True), precision=9)


def _interval(data: bytes) -> Any:
    start, end = struct.unpack_from(">qq", data, 1)
    return IntervalWindow(Timestamp.from_micros(start), Timestamp.from_micros(end))


def _global(data: bytes) -> Any:
    return GlobalWindow()


def _decimal(data: bytes) -> Any:
    from decimal import Decimal

    return Decimal(str(data[1:], "ascii"))


def _uuid(data: bytes) -> Any:
    import uuid

    safety = {form: uuid.SafeUUID(value) for value, form in _UUID_SAFETY.items()}
    return uuid.UUID(bytes=bytes(data[1:17]), is_safe=safety[bytes(data[17:])])


def _date(data: bytes) -> datetime.date:
    return datetime.date.fromisoformat(str(data[1:], "ascii"))


_PLAIN_FORMS: dict[bytes, Decoder] = {
    b"t": _timestamp,
    b"T": _precise_timestamp,
    b"w": _interval,
    b"g": _global,
    b"D": _decimal,
    b"u": _uuid,
    b"y": _date,
}
