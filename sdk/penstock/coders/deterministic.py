r"""Keys as bytes: a deterministic, self-describing encoding in which equal bytes mean equal keys.

Grouping compares keys by these bytes, as Beam compares them by the bytes of its deterministic coder, and so
two keys are one key exactly if Beam would say so: ``1``, ``1.0`` and ``True`` are three keys, ``0.0`` and
``-0.0`` are two, and a NaN is the same key as a NaN with the same bits.

An encoded key is a one-byte tag and what follows it. A part of a larger key comes after its size in bytes.

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
the state
                of an object with ``__setstate__``
``r``           Row: names and values in turn
``t T w g``     Timestamp (microseconds, or nanoseconds), IntervalWindow (microseconds), GlobalWindow
``D u y m``     Decimal, UUID, date, datetime (wall clock, fold, zone)
``c``           the class's name and the bytes of the coder that the user registered for it
==============  =====================================================================================

A frozenset is refused, as in Beam. Beyond Beam, which refuses them, the types of the last lines from ``r`` on
and dicts and sets whose members Python cannot order are keys. Two datetimes are one key if wall clock, fold
and zone are the same; two Decimals, if their digits and exponent are.
"""

from __future__ import annotations

import io
import logging
import pickle
import struct
from collections.abc import Sequence
from typing import Any

from penstock.coders.base import Coder, registry_in_use
from penstock.coders.key_forms import (
    SHORT_SIZES,
    Decoder,
    Encoder,
    class_encoder,
    class_named,
    decoders,
    framed,
    library_encoder,
    long_size,
    name_of,
    refusal,
    register_key_class,
    unframed,
)
from penstock.error import three_parts

_LOGGER = logging.getLogger(__name__)


class _Switch:
    on = False


class _Pickler(pickle.Pickler):
    """Names classes as keys do, so that classes of the main program are pickled alike everywhere."""

    def persistent_id(self, value: Any) -> bytes | None:
        if not isinstance(value, type) or value.__module__ == "builtins":
            return None
        register_key_class(value)
        return name_of(value)


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: Any) -> type:
        return class_named(name)


class PickledKeyCoder(Coder):
    """Pickles a key; two keys that are equal may have different bytes.

    >>> PickledKeyCoder().decode(PickledKeyCoder().encode({1, 2}))
    {1, 2}
    """

    def encode(self, value: Any) -> bytes:
        file = io.BytesIO()
        _Pickler(file, 5).dump(value)
        return file.getvalue()

    def decode(self, encoded: bytes) -> Any:
        return _Unpickler(io.BytesIO(encoded)).load()


def set_pickling(on: bool) -> bool:
    """Sets whether keys may be pickled in this process: the option ``allow_non_deterministic_key_coders``.

    Returns:
        Whether it was different before.
    """
    changed = _Switch.on != on
    _Switch.on = on
    return changed


def fallback_coder(kind: type) -> Coder | None:
    """The coder of keys of a class that has no deterministic encoding.

    Returns:
        The registered fallback coder that takes the class and says that it is deterministic, or one that pickles if
        that is allowed; otherwise None.
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
    if not _Switch.on:
        return None
    _LOGGER.warning(
        "keys of type %s.%s are pickled: equal ones whose pickled bytes differ are different keys",
        kind.__module__,
        kind.__qualname__,
    )
    return PickledKeyCoder()


_pack_short = struct.Struct(">ci").pack
_pack_long = struct.Struct(">cq").pack
_unpack_short = struct.Struct(">i").unpack_from
_pack_float = struct.Struct(">cd").pack


def encode_key(value: object) -> bytes:
    r"""The bytes of a key.

    Args:
        value: A key of any of the types that this module's text lists.

    Returns:
        The encoding; equal for two keys if and only if they are the same key.

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


def decode_key(data: bytes) -> Any:
    """The key that was encoded.

    Args:
        data: What `encode_key` returned.

    Raises:
        ValueError: The bytes are not an encoded key.
        LookupError: The key's class cannot be found in this process; see `register_key_class`.

    >>> decode_key(encode_key(("a", 1, None)))
    ('a', 1, None)
    """
    try:
        decoder = _decoders[data[0]]
    except (IndexError, KeyError):
        raise ValueError(f"not an encoded key: it begins with {bytes(data[:1])!r}") from None
    return decoder(data)


def encode_keys(values: Sequence[object]) -> list[bytes]:
    """The bytes of many keys; faster than one by one if all are of one type.

    Raises:
        TypeError: As `encode_key` does.

    >>> encode_keys(["a", "b"])
    [b'sa', b'sb']
    """
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


def as_coders_give_them(keys: dict[bytes, Any]) -> dict[bytes, Any]:
    """Keys as they come out of a grouping: where coders of the user's say what is one key, as those decode it.

    Args:
        keys: Keys by their encodings.
    """
    return {name: decode_key(name) for name in keys} if _registered_coders else keys


def forget_encoders() -> None:
    """Drops what is remembered of the classes met so far, because a coder was registered for one."""
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
    # This is `framed` once more, without its calls: most keys that are not a str or an int come this way.
    out = [b"("]
    for part in value:
        data = (_encoders.get(type(part)) or _encoder_of(type(part)))(part)
        size = len(data)
        out.append(SHORT_SIZES[size] if size < 128 else long_size(size))
        out.append(data)
    return b"".join(out)


def _encode_dict(value: dict[object, object]) -> bytes:
    pairs = sorted((encode_key(key), encode_key(part)) for key, part in value.items())
    return framed((part for pair in pairs for part in pair), b"{")


_BUILT_IN_ENCODERS: dict[type, Encoder] = {
    str: _encode_str,
    int: _encode_int,
    tuple: _encode_tuple,
    bytes: lambda value: b"b" + value,
    float: lambda value: _pack_float(b"f", value),
    bool: lambda value: b"1" if value else b"0",
    type(None): lambda value: b"N",
    list: lambda value: framed(map(encode_key, value), b"["),
    dict: _encode_dict,
    set: lambda value: framed(sorted(map(encode_key, value)), b"<"),
}
_encoders: dict[type, Encoder] = dict(_BUILT_IN_ENCODERS)


def _encoder_of(kind: type) -> Encoder:
    """Finds, and remembers, how keys of a type that was not met before are encoded."""
    if _fallback_encoders:
        found = _fallback_encoders.get((kind, registry_in_use()))
        if found is not None:
            return found
    encoder = _registered_encoder(kind) or library_encoder(kind, encode_key)
    if encoder is None:
        try:
            encoder = class_encoder(kind, encode_key, _base_with_coder(kind))
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
    """The deterministic coder of a type that the user registered one for."""
    registry = registry_in_use()
    found = _registered_coders.get(kind) or registry.registered_coder(kind)
    if found is not None:
        try:
            found = _registered_coders[kind] = found.as_deterministic_coder("grouping")
        except (TypeError, ValueError) as error:
            raise refusal(
                kind,
                f"its registered coder {found!r} is not deterministic",
                f"have {type(found).__name__}.is_deterministic return True if it encodes equal values "
                "as equal bytes, or register another coder",
            ) from error
    return found


def _registered_encoder(kind: type) -> Encoder | None:
    coder = _registered_coder(kind)
    if coder is None:
        return None
    encode = coder.encode
    head = framed([name_of(kind)], b"c")
    return lambda value: framed([encode(value)], head)


def allow_pickled_keys(allowed: bool) -> None:
    """Whether keys of classes without a deterministic encoding are pickled in this process, and not refused.

    A runner calls it where a run begins, and in the workers.
    """
    if set_pickling(allowed):
        forget_encoders()


def _fallback_encoder(kind: type) -> Encoder | None:
    coder = fallback_coder(kind)
    if coder is None:
        return None
    encode = coder.encode
    head = framed([name_of(kind)], b"p")
    # Another registry, such as one that a test makes, has other fallbacks.
    place = kind, registry_in_use()
    _fallback_coders[place] = coder
    found = _fallback_encoders[place] = lambda value: framed([encode(value)], head)
    return found


def _decode_fallback(data: bytes) -> Any:
    name, payload = unframed(data, 1)
    place = class_named(bytes(name)), registry_in_use()
    if place not in _fallback_coders:
        # What encodes such keys decodes them.
        _encoder_of(place[0])
    return _fallback_coders[place].decode(bytes(payload))


def _base_with_coder(kind: type) -> type | None:
    """The nearest base of a class that the user registered a coder for: it is not used for derived classes."""
    registry = registry_in_use()
    return next((base for base in kind.__mro__[1:] if registry.registered_coder(base) is not None), None)


def _decode_registered(data: bytes) -> Any:
    name, payload = unframed(data, 1)
    kind = class_named(bytes(name))
    coder = _registered_coder(kind)
    if coder is None:
        raise LookupError(
            three_parts(
                f"no coder is registered for {kind.__qualname__} in the process that decodes the key",
                hint="register the coder that the key was encoded with before the pipeline runs",
            )
        )
    return coder.decode(bytes(payload))


def _decode_str(data: bytes) -> str:
    try:
        return data[1:].decode()
    except UnicodeDecodeError:
        return data[1:].decode("utf-8", "surrogatepass")


def _decode_long(data: bytes) -> int:
    return int.from_bytes(data[1:], "big", signed=True)


def _decode_tuple(data: bytes) -> tuple[Any, ...]:
    # This is `unframed` once more, as `_encode_tuple` is `framed`, where all parts are short and of a known form.
    parts, position, end = [], 1, len(data)
    while position < end:
        size = data[position]
        start = position + 1
        position = start + size
        decoder = _decoders.get(data[start]) if 0 < size < 128 and position <= end else None
        if decoder is None:
            return tuple(map(decode_key, unframed(data, 1)))
        parts.append(decoder(data[start:position]))
    return tuple(parts)


def _decode_dict(data: bytes) -> dict[Any, Any]:
    parts = [decode_key(part) for part in unframed(data, 1)]
    return dict(zip(parts[::2], parts[1::2], strict=True))


_BUILT_IN_DECODERS: dict[bytes, Decoder] = {
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
    b"[": lambda data: list(map(decode_key, unframed(data, 1))),
    b"{": _decode_dict,
    b"<": lambda data: set(map(decode_key, unframed(data, 1))),
    b"c": _decode_registered,
    b"p": _decode_fallback,
}
_decoders: dict[int, Decoder] = {tag[0]: form for tag, form in _BUILT_IN_DECODERS.items()} | decoders(
    decode_key
)
