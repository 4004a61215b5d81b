r"""Keys as bytes: a deterministic, self-describing encoding in which equal bytes mean equal keys.

Grouping compares keys by these bytes, as Beam compares them by the bytes of its deterministic coder. So
two keys are one key exactly if they are one in Beam: ``1``, ``1.0`` and ``True`` are three keys, ``0.0`` and
``-0.0`` are two, and NaNs with the same bits are one.

An encoded key begins with a tag of one byte. A part of a larger key comes after its size in bytes.

==============  =====================================================================================
tag             value
==============  =====================================================================================
``N 0 1``       None, False, True
``i q I``       int: in 4 bytes, in 8 bytes, or in as few as it needs (always the shortest of the three)
``f``           float, its 8 bytes
``s b``         str in UTF-8 (lone surrogates kept), bytes
``( [``         tuple, list: the parts
``{ <``         dict: keys and values, in the order of the encoded keys; set: the sorted encoded members
``n d e o``     the class's name; a named tuple's parts, a frozen dataclass's parts, an enum member's value,
                the state of an object with ``__setstate__``
``r``           Row: names and values in turn
``t T w g``     Timestamp (microseconds, or nanoseconds), IntervalWindow (microseconds), GlobalWindow
``D u y m``     Decimal, UUID, date, datetime (wall clock, fold, zone)
``l``           timedelta, as text: its microseconds
``c``           the class's name and the bytes of the coder that the user registered for it
==============  =====================================================================================

A frozenset is refused, as in Beam. Beyond Beam, which refuses them, the types of the last lines from ``r`` on
and dicts and sets whose members Python cannot order are keys. Two datetimes are one key if wall clock, fold
and zone are the same; two Decimals, if their digits and exponent are.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import importlib
import io
import logging
import pickle
import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, TypeVar

from penstock.coders import checked_coding
from penstock.coders.base import Coder, registry_in_use
from penstock.elements.bounded_window import GlobalWindow, IntervalWindow
from penstock.elements.row import Row
from penstock.error import refusal
from penstock.utils.timestamp import Timestamp
from penstock.where import is_raised_by_user

_classes: dict[bytes, type] = {}

ClassT = TypeVar("ClassT", bound=type)


def register_key_class(cls: ClassT) -> ClassT:
    """Makes a class known to `penstock.coders.deterministic.decode_key` in this process; usable as a decorator.

    A key holds only the name of its class, ``module:qualified name``. Classes that can be imported under that
    name need no registration. Classes of ``__main__`` or of a function's body cannot be imported in another
    process, so a runner sends `list_key_classes` along with the functions and registers them wherever keys are
    decoded. The class registered last under a name wins, so that a cell of a notebook can be run again.
    """
    _classes[name_of(cls)] = cls
    return cls


def list_key_classes() -> tuple[type, ...]:
    """The classes of keys that another process cannot import under their names, so that a runner has to send them."""
    return tuple(cls for name, cls in _classes.items() if _import(name) is not cls)


def name_of(cls: type) -> bytes:
    """Returns the name of a class in an encoded key."""
    return f"{cls.__module__}:{cls.__qualname__}".encode()


def find_key_class(name: bytes) -> type:
    """Returns the class that an encoded key names; LookupError if it can neither be imported nor is registered."""
    found = _classes.get(name)
    if found is None:
        found = _import(name)
        if found is None:
            raise refusal(
                LookupError,
                f"the class {name.decode()!r} of a key cannot be found in this process",
                hint="move the class to a module that the workers can import, or call "
                "penstock.coders.deterministic.register_key_class(cls) there",
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

_micros = struct.Struct(">q").pack
_interval_micros = struct.Struct(">qq").pack


def _pack_micros(*micros: int) -> bytes:
    """The bytes of a time, or of the start and the end of a window."""
    try:
        return _micros(*micros) if len(micros) == 1 else _interval_micros(*micros)
    except struct.error:
        why = "it is too far from 1970: its microseconds do not fit into 64 bits"
        raise make_encoding_error(Timestamp, why, "use another time, or a string") from None


_MICROSECOND = datetime.timedelta(microseconds=1)
_UUID_SAFETY = {None: b"", 0: b"\x00", -1: b"\xff"}
# The sizes that take one byte, ready made.
SHORT_SIZES = tuple(bytes([size]) for size in range(128))


def frame_parts(parts: Iterable[bytes], head: bytes) -> bytes:
    r"""`head`, then each part after its size: a base-128 number, low digits first, as Beam's VarInt.

    >>> frame_parts([b"ab", b""], b"(")
    b'(\x02ab\x00'
    """
    out = [head]
    for part in parts:
        size = len(part)
        if size < 128:
            out.append(SHORT_SIZES[size])
        else:
            out.append(encode_long_size(size))
        out.append(part)
    return b"".join(out)


def encode_long_size(size: int) -> bytes:
    """Returns a size of 128 or more, as `frame_parts` writes it."""
    digits = bytearray()
    while size > 127:
        digits.append(size & 127 | 128)
        size >>= 7
    digits.append(size)
    return bytes(digits)


def unframe_parts(data: bytes, position: int) -> list[bytes]:
    r"""Returns the parts that `frame_parts` wrote, from `position` to the end.

    >>> unframe_parts(b"(\x02ab\x00", 1)
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
    if position > end:
        raise IndexError("the last part is cut off")
    return parts


_REGISTER = (
    "use a tuple, a NamedTuple or a frozen dataclass of plain values, or register a "
    "deterministic coder with penstock.coders.registry.register_coder"
)


def make_encoding_error(kind: type, why: str = "", hint: str = _REGISTER) -> TypeError:
    """The error for a key, or a part of it, without a deterministic encoding; `why` is a clause that says more."""
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return refusal(
        TypeError,
        f"Unable to deterministically encode a key: keys of type {name} have no deterministic encoding"
        + (f": {why}" if why else ""),
        where="",  # The step is known where keys are encoded.
        hint=hint,
    )


def library_encoder(kind: type) -> Encoder | None:
    """The encoder of a class of the standard library or of penstock itself, found by name: nothing is imported."""
    match f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}":
        case "penstock.Timestamp":
            return lambda value: b"t" + _pack_micros(value.micros)
        case "penstock.PreciseTimestamp":
            return _encode_precise
        case "penstock.IntervalWindow":
            return lambda value: b"w" + _pack_micros(value.start_micros, value.end_micros)
        case "penstock.GlobalWindow":
            return lambda value: b"g"
        case "penstock.Row":
            return lambda row: frame_parts(
                (encode_key(part) for item in vars(row).items() for part in item), b"r"
            )
        case "decimal.Decimal":
            return lambda value: b"D" + str(value).encode()
        case "uuid.UUID":
            return lambda value: b"u" + value.bytes + _UUID_SAFETY[value.is_safe.value]
        case "datetime.date":
            return lambda value: b"y" + value.isoformat().encode()
        case "datetime.timedelta":
            return lambda value: b"l" + str(value // _MICROSECOND).encode()
        case "datetime.datetime":
            return lambda value: (
                b"m"
                + encode_key(
                    (value.replace(tzinfo=None, fold=0).isoformat(), value.fold, _zone_parts(value.tzinfo))
                )
            )
    return None


def _encode_precise(value: Timestamp) -> bytes:
    # Timestamps that are equal are one key, whatever their precision.
    nanos: int = value.nanos
    if nanos % 1000:
        return b"T" + nanos.to_bytes(nanos.bit_length() // 8 + 1, "big", signed=True)
    return b"t" + _pack_micros(nanos // 1000)


def _zone_parts(zone: datetime.tzinfo | None) -> object:
    """A zone as plain values: a key of the zone database, or a fixed offset as (microseconds, name or None)."""
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
    raise make_encoding_error(
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


def class_encoder(kind: type, base_with_coder: type | None = None) -> Encoder:
    """Returns the encoder of a user's class that Beam encodes deterministically; TypeError for any other class.

    These are enums, frozen dataclasses (their ``init`` fields), named tuples, and classes with
    ``__setstate__`` that do not define ``__reduce__``. A coder may be registered for a base of the class,
    `base_with_coder`, which the error then mentions.
    """
    name = name_of(kind)
    if issubclass(kind, enum.Enum):
        head = frame_parts([name], b"e")
        return lambda member: head + encode_key(member.value)
    if dataclasses.is_dataclass(kind):
        if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise make_encoding_error(kind, "the dataclass is not frozen")
        head = frame_parts([name], b"d")
        fields = [field.name for field in dataclasses.fields(kind) if field.init]
        return lambda value: frame_parts([encode_key(getattr(value, field)) for field in fields], head)
    if issubclass(kind, tuple) and hasattr(kind, "_fields") and hasattr(kind, "_make"):
        head = frame_parts([name], b"n")
        return lambda value: frame_parts(map(encode_key, value), head)
    if kind.__reduce__ is object.__reduce__ and hasattr(kind, "__setstate__"):
        head = frame_parts([name], b"o")
        return lambda value: head + encode_key(value.__getstate__())
    if base_with_coder is not None:
        why = (
            f"the coder that is registered for {base_with_coder.__qualname__} is not used for derived classes"
        )
        raise make_encoding_error(kind, why, f"also register a coder for {kind.__qualname__}")
    raise make_encoding_error(kind)


def _of_class(data: bytes) -> tuple[Any, int]:
    """The class that an encoded key names, and where the name ends."""
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
    return find_key_class(bytes(data[end : end + size])), end + size


def _named_tuple(data: bytes) -> object:
    cls, position = _of_class(data)
    return cls._make(map(decode_key, unframe_parts(data, position)))


def _dataclass(data: bytes) -> object:
    cls, position = _of_class(data)
    fields = [field for field in dataclasses.fields(cls) if field.init]
    values = dict(zip(fields, map(decode_key, unframe_parts(data, position)), strict=True))
    positional = [value for field, value in values.items() if not field.kw_only]
    return cls(*positional, **{field.name: value for field, value in values.items() if field.kw_only})


def _enumeration(data: bytes) -> object:
    cls, position = _of_class(data)
    return cls(decode_key(data[position:]))


def _stateful(data: bytes) -> object:
    cls, position = _of_class(data)
    value: Any = cls.__new__(cls)
    value.__setstate__(decode_key(data[position:]))
    return value


def _datetime(text: str, fold: int, zone: object) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(fold=fold, tzinfo=_zone(zone))


def _interval(data: bytes) -> IntervalWindow:
    start, end = struct.unpack_from(">qq", data, 1)
    return IntervalWindow(Timestamp.from_micros(start), Timestamp.from_micros(end))


def _decimal(data: bytes) -> Decimal:
    from decimal import Decimal

    return Decimal(str(data[1:], "ascii"))


def _uuid(data: bytes) -> object:
    import uuid

    safety = {form: uuid.SafeUUID(value) for value, form in _UUID_SAFETY.items()}
    return uuid.UUID(bytes=bytes(data[1:17]), is_safe=safety[bytes(data[17:])])


_LOGGER = logging.getLogger(__name__)


class _Pickler(pickle.Pickler):
    """Names classes as keys do, so that classes of the main program are pickled alike everywhere."""

    def persistent_id(self, value: object) -> bytes | None:
        if not isinstance(value, type) or value.__module__ == "builtins":
            return None
        register_key_class(value)
        return name_of(value)


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: bytes) -> type:
        return find_key_class(name)


class PickledKeyCoder(Coder):
    """Pickles a key; two keys that are equal may have different bytes.

    >>> PickledKeyCoder().decode(PickledKeyCoder().encode({1, 2}))
    {1, 2}
    """

    def encode(self, value: object) -> bytes:
        file = io.BytesIO()
        _Pickler(file, 5).dump(value)
        return file.getvalue()

    def decode(self, encoded: bytes) -> Any:
        return _Unpickler(io.BytesIO(encoded)).load()


_pack_short = struct.Struct(">ci").pack
_pack_long = struct.Struct(">cq").pack
_unpack_short = struct.Struct(">i").unpack_from
_pack_float = struct.Struct(">cd").pack


def encode_key(value: object) -> bytes:
    r"""Returns the bytes of a key: equal for two keys if and only if they are the same key.

    Raises:
        TypeError: The key, or a part of it, is of a type that has no deterministic encoding.

    >>> encode_key("a"), encode_key((1, "a"))
    (b'sa', b'(\x05i\x00\x00\x00\x01\x02sa')
    >>> encode_key(1) == encode_key(True)
    False
    """
    encoder = _encoders.get(type(value))
    if encoder is None:
        encoder = _encoder_of(type(value))
    return encoder(value)


_NOT_A_KEY = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)
"""Exceptions that decoders raise for bytes that are not an encoded key, or are only a part of one."""


def decode_key(data: bytes) -> Any:
    """Returns the key that `encode_key` encoded.

    Raises:
        ValueError: The bytes are not an encoded key.
        LookupError: The key's class cannot be found in this process; see `register_key_class`.

    >>> decode_key(encode_key(("a", 1, None)))
    ('a', 1, None)
    """
    try:
        return _decoders[data[0]](data)
    except _NOT_A_KEY as error:
        if "\n" in str(error) or is_raised_by_user(error):
            # It says what is wrong itself, such as that the class of the key cannot be found.
            raise
        what = f"some bytes that begin with {bytes(data[:1])!r} are not an encoded key"
        hint = "decode only what encode_key of the same version of penstock has encoded"
        raise refusal(ValueError, what, hint=hint) from error


def encode_keys(values: Sequence[object]) -> list[bytes]:
    """Returns the bytes of many keys; faster than one by one if all are of one type."""
    kinds = set(map(type, values))
    if len(kinds) != 1:
        return [encode_key(value) for value in values]
    kind = kinds.pop()
    if kind is str:
        try:
            return [b"s" + text.encode() for text in values]  # type: ignore[attr-defined]
        except UnicodeEncodeError:
            return list(map(_encode_str, values))  # type: ignore[arg-type]
    return list(map(_encoders.get(kind) or _encoder_of(kind), values))


_TOLD_APART = frozenset((str, int, bytes, type(None)))
"""Types of which no two values are equal, unless their encodings are."""


def find_plain_key_type(keys: Sequence[object]) -> type | None:
    """Returns the type of all keys, if two of them are equal exactly if their encodings are; None if that is uncertain.

    Python finds 1, 1.0 and True equal, whose encodings differ. So a dict may have keys of such a type in place of their
    encodings.

    >>> find_plain_key_type(["a", "b"]), find_plain_key_type([("a", 1), ("a", None)])
    (<class 'str'>, <class 'tuple'>)
    >>> find_plain_key_type([1, "b"]), find_plain_key_type([("a", 1), ("a", True)]), find_plain_key_type([])
    (None, None, None)
    """
    kinds = set(map(type, keys))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is str or kind is int:
        return kind
    if kind is None or not issubclass(kind, tuple) or not _is_plain_tuple(kind):
        return None
    return kind if _TOLD_APART.issuperset(map(type, chain.from_iterable(keys))) else None  # type: ignore[arg-type]


def _is_plain_tuple(kind: type) -> bool:
    """True if a class is tuple, or a named tuple that is compared and encoded by its parts."""
    if kind is tuple:
        return True
    is_usual = all(getattr(kind, name) is getattr(tuple, name) for name in ("__eq__", "__hash__", "__iter__"))
    return is_usual and hasattr(kind, "_fields") and _registered_coder(kind) is None


def decode_registered_keys(keys: dict[bytes, Any]) -> dict[bytes, Any]:
    """Returns keys by their encodings, as a grouping emits them: decoded, if the user has a coder for keys."""
    return {name: decode_key(name) for name in keys} if _registered_coders else keys


def forget_encoders() -> None:
    """Drops what is remembered of classes, because a coder was registered."""
    _registered_coders.clear()
    _fallback_coders.clear()
    _fallback_encoders.clear()
    for kind in _encoders.keys() - _BUILT_IN_ENCODERS.keys():
        _encoders.pop(kind, None)


def _encode_str(value: str) -> bytes:
    try:
        return b"s" + value.encode()
    except UnicodeEncodeError:
        return b"s" + value.encode("utf-8", "surrogatepass")


def _encode_int(value: int) -> bytes:
    if -0x80000000 <= value <= 0x7FFFFFFF:
        return _pack_short(b"i", value)
    try:
        return _pack_long(b"q", value)
    except struct.error:
        return b"I" + value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _encode_tuple(value: tuple[object, ...]) -> bytes:
    # A copy of `frame_parts` without its calls: most keys that are not a str or an int come this way.
    out = [b"("]
    for part in value:
        data = (_encoders.get(type(part)) or _encoder_of(type(part)))(part)
        size = len(data)
        out.append(SHORT_SIZES[size] if size < 128 else encode_long_size(size))
        out.append(data)
    return b"".join(out)


def _encode_dict(value: dict[object, object]) -> bytes:
    pairs = sorted((encode_key(key), encode_key(part)) for key, part in value.items())
    return frame_parts((part for pair in pairs for part in pair), b"{")


_BUILT_IN_ENCODERS: dict[type, Encoder] = {
    str: _encode_str,
    int: _encode_int,
    tuple: _encode_tuple,
    bytes: lambda value: b"b" + value,
    float: lambda value: _pack_float(b"f", value),
    bool: lambda value: b"1" if value else b"0",
    type(None): lambda value: b"N",
    list: lambda value: frame_parts(map(encode_key, value), b"["),
    dict: _encode_dict,
    set: lambda value: frame_parts(sorted(map(encode_key, value)), b"<"),
}
_encoders: dict[type, Encoder] = dict(_BUILT_IN_ENCODERS)


def _encoder_of(kind: type) -> Encoder:
    """Finds, and remembers, how keys of a new type are encoded."""
    if _fallback_encoders:
        found = _fallback_encoders.get((kind, registry_in_use()))
        if found is not None:
            return found
    encoder = _registered_encoder(kind) or library_encoder(kind)
    if encoder is None:
        try:
            encoder = class_encoder(kind, _base_with_coder(kind))
        except TypeError:
            fallback = _fallback_encoder(kind)
            if fallback is None:
                raise
            register_key_class(kind)
            return fallback
    register_key_class(kind)
    _encoders[kind] = encoder
    return encoder


_registered_coders: dict[type, Coder] = {}
_fallback_coders: dict[tuple[type, object], Coder] = {}
_fallback_encoders: dict[tuple[type, object], Encoder] = {}


def _registered_coder(kind: type) -> Coder | None:
    """The deterministic coder of a type that the user registered one for; None also if it encodes as keys are."""
    if kind in _registered_coders:
        return _registered_coders[kind]
    registered = registry_in_use().registered_coder(kind)
    if registered is None:
        return None
    try:
        found = registered.as_deterministic_coder("grouping")
    except (TypeError, ValueError) as error:
        raise make_encoding_error(
            kind,
            f"its registered coder {registered!r} is not deterministic",
            f"have {type(registered).__name__}.is_deterministic return True if it encodes equal values "
            "as equal bytes, or register another coder",
        ) from error
    if found.encodes_as_keys:
        return None
    _registered_coders[kind] = found
    return found


def _registered_encoder(kind: type) -> Encoder | None:
    coder = _registered_coder(kind)
    if coder is None:
        return None
    head = frame_parts([name_of(kind)], b"c")
    return lambda value: frame_parts([checked_coding.encode_value(coder, value, kind)], head)


_pickles_keys = False


def allow_pickled_keys(allowed: bool) -> None:
    """Sets whether keys of classes without a deterministic encoding are pickled in this process, and not refused.

    A runner calls it where a run begins, and in the workers.
    """
    global _pickles_keys
    if allowed != _pickles_keys:
        _pickles_keys = allowed
        forget_encoders()


def _fallback_coder(kind: type) -> Coder | None:
    """The coder of keys of a class that has no deterministic encoding; None if it has none.

    It is the newest registered fallback coder that takes the class and says that it is deterministic, or one that
    pickles if that is allowed.
    """
    registry = registry_in_use()
    for fallback in reversed(registry.custom_fallbacks):
        try:
            coder: Coder = fallback.from_type_hint(kind, registry)
        except Exception:
            # It passes this class on.
            continue
        if coder.is_deterministic():
            return coder
        break
    if not _pickles_keys:
        return None
    _LOGGER.warning(
        "keys of type %s.%s are pickled: equal ones whose pickled bytes differ are different keys",
        kind.__module__,
        kind.__qualname__,
    )
    return PickledKeyCoder()


def _fallback_encoder(kind: type) -> Encoder | None:
    coder = _fallback_coder(kind)
    if coder is None:
        return None
    head = frame_parts([name_of(kind)], b"p")
    # Another registry, such as one that a test makes, has other fallbacks.
    place = kind, registry_in_use()
    _fallback_coders[place] = coder
    found = _fallback_encoders[place] = lambda value: frame_parts(
        [checked_coding.encode_value(coder, value, kind)], head
    )
    return found


def _decode_fallback(data: bytes) -> object:
    name, payload = unframe_parts(data, 1)
    place = find_key_class(bytes(name)), registry_in_use()
    if place not in _fallback_coders:
        # The coder that encodes such keys decodes them.
        _encoder_of(place[0])
    return checked_coding.decode_value(_fallback_coders[place], bytes(payload), place[0])


def _base_with_coder(kind: type) -> type | None:
    """The nearest base of a class that the user registered a coder for, which is not used for derived classes."""
    registry = registry_in_use()
    return next((base for base in kind.__mro__[1:] if registry.registered_coder(base) is not None), None)


def _decode_registered(data: bytes) -> object:
    name, payload = unframe_parts(data, 1)
    kind = find_key_class(bytes(name))
    coder = _registered_coder(kind)
    if coder is None:
        what = f"no coder is registered for {kind.__qualname__} in the process that decodes the key"
        hint = "register the coder that the key was encoded with before the pipeline runs"
        raise refusal(LookupError, what, hint=hint)
    return checked_coding.decode_value(coder, bytes(payload), kind)


def _decode_str(data: bytes) -> str:
    try:
        return data[1:].decode()
    except UnicodeDecodeError:
        return data[1:].decode("utf-8", "surrogatepass")


def _decode_long(data: bytes) -> int:
    return int.from_bytes(data[1:], "big", signed=True)


def _decode_tuple(data: bytes) -> tuple[Any, ...]:
    # A copy of `unframe_parts`, as `_encode_tuple` copies `frame_parts`, where all parts are short and of a known form.
    parts, position, end = [], 1, len(data)
    while position < end:
        size = data[position]
        start = position + 1
        position = start + size
        decoder = _decoders.get(data[start]) if 0 < size < 128 and position <= end else None
        if decoder is None:
            return tuple(map(decode_key, unframe_parts(data, 1)))
        parts.append(decoder(data[start:position]))
    return tuple(parts)


def _decode_dict(data: bytes) -> dict[Any, Any]:
    parts = [decode_key(part) for part in unframe_parts(data, 1)]
    return dict(zip(parts[::2], parts[1::2], strict=True))


_DECODERS: dict[bytes, Decoder] = {
    b"s": _decode_str,
    b"i": lambda data: _unpack_short(data, 1)[0],
    b"q": _decode_long,
    b"I": _decode_long,
    b"(": _decode_tuple,
    b"b": lambda data: bytes(data[1:]),
    b"f": lambda data: struct.unpack_from(">d", data, 1)[0],
    b"1": lambda data: True,
    b"0": lambda data: False,
    b"N": lambda data: None,
    b"[": lambda data: list(map(decode_key, unframe_parts(data, 1))),
    b"{": _decode_dict,
    b"<": lambda data: set(map(decode_key, unframe_parts(data, 1))),
    b"c": _decode_registered,
    b"p": _decode_fallback,
    b"n": _named_tuple,
    b"d": _dataclass,
    b"e": _enumeration,
    b"o": _stateful,
    b"r": lambda data: Row(**_decode_dict(data)),
    b"l": lambda data: int(data[1:]) * _MICROSECOND,
    b"m": lambda data: _datetime(*decode_key(data[1:])),
    b"t": lambda data: Timestamp.from_micros(_decode_long(data)),
    b"T": lambda data: Timestamp(subseconds=_decode_long(data), precision=9),
    b"w": _interval,
    b"g": lambda data: GlobalWindow(),
    b"D": _decimal,
    b"u": _uuid,
    b"y": lambda data: datetime.date.fromisoformat(str(data[1:], "ascii")),
}
_decoders: dict[int, Decoder] = {tag[0]: form for tag, form in _DECODERS.items()}
