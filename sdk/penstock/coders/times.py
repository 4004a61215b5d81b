"""The coders of moments, windows, panes and windowed values, each with Beam's wire format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from penstock.base.bounded_window import GlobalWindow, IntervalWindow
from penstock.coders.base import Coder, FastCoder, Registry
from penstock.coders.composites import TupleSequenceCoder
from penstock.coders.pickles import PickleCoder
from penstock.coders.primitives import BytesCoder, SingletonCoder
from penstock.coders.stream import InputStream, OutputStream
from penstock.typehints import typehints
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming, create

if TYPE_CHECKING:
    from penstock.base.bounded_window import IntervalWindow
    from penstock.utils.timestamp import Timestamp
    from penstock.utils.windowed_value import PaneInfo, WindowedValue

# Added to a signed number, it makes an unsigned one of 8 bytes that sorts the same way.
_SHIFT = 1 << 63


class TimestampCoder(FastCoder):
    """Timestamps, rounded down to milliseconds, in 8 bytes that sort as the times do (Beam's
    ``TimestampCoder``).

    >>> from penstock.utils.timestamp import Timestamp
    >>> TimestampCoder().encode(Timestamp(0)).hex()
    '8000000000000000'
    """

    def encode_to_stream(self, value: Timestamp, stream: OutputStream, nested: bool) -> None:
        stream.write_packed("Q", value.micros // 1000 + _SHIFT)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Timestamp:
        return Timestamp.from_micros((stream.read_packed("Q") - _SHIFT) * 1000)

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type:
        return Timestamp


class IntervalWindowCoder(FastCoder):
    """Intervals: the end as a timestamp, then the length in milliseconds as a VarInt (Beam's name)."""

    def encode_to_stream(self, value: IntervalWindow, stream: OutputStream, nested: bool) -> None:
        """Writes a window whose bounds are rounded down to milliseconds."""
        end_millis = value.end_micros // 1000
        stream.write_packed("Q", end_millis + _SHIFT)
        stream.write_var_int64(end_millis - value.start_micros // 1000)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> IntervalWindow:
        end_millis = stream.read_packed("Q") - _SHIFT
        return IntervalWindow.from_micros((end_millis - stream.read_var_int64()) * 1000, end_millis * 1000)

    def is_deterministic(self) -> bool:
        return True


class GlobalWindowCoder(SingletonCoder):
    """The global window, in no bytes (Beam's ``GlobalWindowCoder``)."""

    def __init__(self) -> None:
        super().__init__(GlobalWindow())


class _Bounded(Protocol):
    def max_timestamp(self) -> Timestamp: ...


class TimestampPrefixingWindowCoder(FastCoder):
    """Windows of any kind: the latest timestamp in them, then the window (Beam's
    ``TimestampPrefixingWindowCoder``).

    Args:
        window_coder: The coder of the windows.
    """

    def __init__(self, window_coder: Coder) -> None:
        self._window_coder = window_coder

    def encode_to_stream(self, value: _Bounded, stream: OutputStream, nested: bool) -> None:
        TimestampCoder().encode_to_stream(value.max_timestamp(), stream, nested)
        self._window_coder.encode_to_stream(value, stream, nested)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        TimestampCoder().decode_from_stream(stream, nested)
        return self._window_coder.decode_from_stream(stream, nested)

    def is_deterministic(self) -> bool:
        return self._window_coder.is_deterministic()

    def to_type_hint(self) -> Any:
        return self._window_coder.to_type_hint()

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self._window_coder!r}]"


class PaneInfoCoder(FastCoder):
    """Panes: one byte, and the indices as VarInts unless it is a first pane (Beam's
    ``PaneInfoCoder``).
    """

    def encode_to_stream(self, value: PaneInfo, stream: OutputStream, nested: bool) -> None:
        if value.timing == PaneInfoTiming.UNKNOWN or value.index == value.nonspeculative_index == 0:
            indices: tuple[int, ...] = ()
        elif value.index == value.nonspeculative_index or value.timing == PaneInfoTiming.EARLY:
            indices = (value.index,)
        else:
            indices = (value.index, value.nonspeculative_index)
        stream.write_byte(value.encoded_byte | len(indices) << 4)
        for index in indices:
            stream.write_var_int64(index)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> PaneInfo:
        """Reads a pane; ValueError for a byte that no pane has."""
        byte = stream.read_byte()
        pane = PaneInfo.from_encoded_byte(byte & 15)
        index_count = byte >> 4
        if index_count == 0:
            return pane
        if index_count > 2:
            raise ValueError(f"no pane is encoded with the first byte {byte}")
        index = stream.read_var_int64()
        if index_count == 2:
            nonspeculative_index = stream.read_var_int64()
        else:
            nonspeculative_index = -1 if pane.timing == PaneInfoTiming.EARLY else index
        return PaneInfo(pane.is_first, pane.is_last, pane.timing, index, nonspeculative_index)

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type:
        return PaneInfo


class _AnyWindowCoder(FastCoder):
    """Windows of any kind: a byte that says which, then the window; unknown kinds are pickled."""

    def encode_to_stream(self, value: Any, stream: OutputStream, nested: bool) -> None:
        number = {GlobalWindow: 0, IntervalWindow: 1}.get(type(value), 255)
        stream.write_byte(number)
        _window_coder(number).encode_to_stream(value, stream, nested)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> Any:
        return _window_coder(stream.read_byte()).decode_from_stream(stream, nested)


def _window_coder(number: int) -> Coder:
    if number == 0:
        return GlobalWindowCoder()
    return IntervalWindowCoder() if number == 1 else PickleCoder()


class WindowedValueCoder(FastCoder):
    """Windowed values: the timestamp in milliseconds, the windows, the pane, the value (Beam's name).

    Args:
        wrapped_value_coder: The coder of the values.
        window_coder: The coder of the windows; by default one that takes any.
    """

    def __init__(self, wrapped_value_coder: Coder, window_coder: Coder | None = None) -> None:
        self.wrapped_value_coder = wrapped_value_coder
        self.timestamp_coder = TimestampCoder()
        self.window_coder = window_coder or _AnyWindowCoder()

    def encode_to_stream(self, value: WindowedValue, stream: OutputStream, nested: bool) -> None:
        micros = max(value.timestamp_micros, MIN_TIMESTAMP.micros)
        # Beam rounds this timestamp towards zero, unlike those that a TimestampCoder writes.
        stream.write_packed("Q", (micros // 1000 if micros >= 0 else -(-micros // 1000)) + _SHIFT)
        TupleSequenceCoder(self.window_coder).encode_to_stream(value.windows, stream, True)
        PaneInfoCoder().encode_to_stream(value.pane_info, stream, True)
        self.wrapped_value_coder.encode_to_stream(value.value, stream, nested)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> WindowedValue:
        """Reads a windowed value; the first and last millisecond become the minimum and maximum timestamp."""
        micros = (stream.read_packed("Q") - _SHIFT) * 1000
        micros = min(max(micros, MIN_TIMESTAMP.micros), MAX_TIMESTAMP.micros)
        windows = TupleSequenceCoder(self.window_coder).decode_from_stream(stream, True)
        pane = PaneInfoCoder().decode_from_stream(stream, True)
        return create(self.wrapped_value_coder.decode_from_stream(stream, nested), micros, windows, pane)

    def is_deterministic(self) -> bool:
        """Whether the coders of values and windows are."""
        return self.wrapped_value_coder.is_deterministic() and self.window_coder.is_deterministic()

    def is_kv_coder(self) -> bool:
        return self.wrapped_value_coder.is_kv_coder()

    def key_coder(self) -> Coder:
        """The coder of the keys of the values."""
        return self.wrapped_value_coder.key_coder()

    def value_coder(self) -> Coder:
        """The coder of the values of the values."""
        return self.wrapped_value_coder.value_coder()

    def to_type_hint(self) -> Any:
        return typehints.WindowedTypeConstraint(self.wrapped_value_coder.to_type_hint())

    @classmethod
    def from_type_hint(cls, typehint: Any, registry: Registry) -> Coder:
        """The coder of a ``WindowedValue`` hint."""
        return cls(registry.get_coder(typehint.inner_type))

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.wrapped_value_coder!r}, {self.window_coder!r}]"


class ParamWindowedValueCoder(WindowedValueCoder):
    """Windowed values that all have the same timestamp, windows and pane, which are not written (Beam's
    name).

    Args:
        payload: The common part: a windowed value of bytes, as a `WindowedValueCoder` encodes it.
        components: The coder of the values and the coder of the windows.
    """

    def __init__(self, payload: bytes, components: tuple[Coder, Coder] | list[Coder]) -> None:
        super().__init__(components[0], components[1])
        self.payload = payload

    def encode_to_stream(self, value: WindowedValue, stream: OutputStream, nested: bool) -> None:
        self.wrapped_value_coder.encode_to_stream(value.value, stream, nested)

    def decode_from_stream(self, stream: InputStream, nested: bool) -> WindowedValue:
        """Reads the value and adds the rest."""
        common: WindowedValue = WindowedValueCoder(BytesCoder(), self.window_coder).decode(self.payload)
        return common.with_value(self.wrapped_value_coder.decode_from_stream(stream, nested))

    def is_deterministic(self) -> bool:
        """Whether the coder of the values is."""
        return self.wrapped_value_coder.is_deterministic()
