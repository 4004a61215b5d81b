"""Values and mutations by chance, the same for the same seed."""

from __future__ import annotations

import datetime
import json
import random
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeVar

from penstock.transforms.window import GlobalWindow, IntervalWindow
from penstock.utils.timestamp import Timestamp

T = TypeVar("T")
_INTERESTING_BYTES = (
    b"\x00",
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\n",
    b"\r\n",
    b'"',
    b"\\",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
)
_INTERESTING_NUMBERS = (
    0,
    1,
    -1,
    127,
    128,
    255,
    2**31 - 1,
    2**31,
    -(2**31),
    2**63 - 1,
    2**63,
    -(2**63),
    2**64,
    10**30,
)
_INTERESTING_FLOATS = (0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), 5e-324, 1.7e308)
_INTERESTING_TEXTS = (
    "",
    "a",
    "ä",
    "\U0001f600",
    "\x00",
    "a b",
    "\n",
    '"',
    "\\",
    "\ufeff",
    "\ud800",
    "x" * 200,
)


class Chance(random.Random):
    """A seeded generator of values, and of small damage to bytes, texts and JSON."""

    def often(self, share: float = 0.5) -> bool:
        return self.random() < share

    def one_of(self, values: Sequence[T]) -> T:
        return values[self.randrange(len(values))]

    def number(self) -> int:
        if self.often():
            return self.one_of(_INTERESTING_NUMBERS)
        return self.randint(-(1 << self.randint(1, 70)), 1 << self.randint(1, 70))

    def text(self, length: int = 8) -> str:
        if self.often(0.3):
            return self.one_of(_INTERESTING_TEXTS)
        return "".join(self.one_of('ab"\\,;\n\r\t ä\U0001f600\x00') for _ in range(self.randint(0, length)))

    def clean_text(self, length: int = 8) -> str:
        """A text that UTF-8 can hold."""
        return self.text(length).encode("utf-8", "replace").decode()

    def blob(self, length: int = 12) -> bytes:
        return self.randbytes(self.randint(0, length))

    def damaged(self, data: bytes) -> bytes:
        """The bytes with one to three small changes."""
        for _ in range(self.randint(1, 3)):
            at = self.randint(0, len(data))
            match self.randrange(6):
                case 0:
                    data = data[:at]
                case 1:
                    data = data[:at] + data[at + self.randint(1, 4) :]
                case 2:
                    data = data[:at] + self.one_of(_INTERESTING_BYTES) + data[at:]
                case 3 if data:
                    place = self.randrange(len(data))
                    data = data[:place] + bytes([data[place] ^ (1 << self.randrange(8))]) + data[place + 1 :]
                case 4:
                    other = self.randint(0, len(data))
                    data = data[:at] + data[min(at, other) : max(at, other)] + data[at:]
                case _:
                    data = data[:at] + self.randbytes(self.randint(1, 8)) + data[at + self.randint(0, 8) :]
        return data

    def damaged_text(self, text: str, words: Sequence[str] = ()) -> str:
        """The text with one to three small changes, some of which put one of the words somewhere."""
        for _ in range(self.randint(1, 3)):
            at = self.randint(0, len(text))
            match self.randrange(5):
                case 0:
                    text = text[:at]
                case 1:
                    text = text[:at] + text[at + self.randint(1, 6) :]
                case 2:
                    text = text[:at] + (self.one_of(words) if words else self.text()) + text[at:]
                case 3:
                    other = self.randint(0, len(text))
                    text = text[:at] + text[min(at, other) : max(at, other)] + text[at:]
                case _:
                    text = text[:at] + self.text(3) + text[at + self.randint(0, 3) :]
        return text

    def damaged_json(self, value: Any) -> Any:
        """A copy of a JSON value in which one part, wherever it is, is another one or is gone."""
        value = json.loads(json.dumps(value))
        places: list[tuple[Any, Any]] = []
        waiting = [value]
        while waiting:
            each = waiting.pop()
            inside = each.items() if isinstance(each, dict) else enumerate(each)
            for key, part in inside:
                places.append((each, key))
                if isinstance(part, dict | list):
                    waiting.append(part)
        if not places or self.often(0.05):
            return self.json_value()
        owner, key = self.one_of(places)
        if self.often(0.3):
            del owner[key]
        else:
            owner[key] = self.json_value()
        return value

    def json_value(self, depth: int = 2) -> Any:
        kinds = 8 if depth else 6
        match self.randrange(kinds):
            case 0:
                return None
            case 1:
                return self.often()
            case 2:
                return self.number()
            case 3:
                return self.one_of((0.5, -1e300, 1e-300))
            case 4 | 5:
                return self.clean_text()
            case 6:
                return [self.json_value(depth - 1) for _ in range(self.randint(0, 3))]
            case _:
                return {self.clean_text(3): self.json_value(depth - 1) for _ in range(self.randint(0, 3))}

    def key(self, depth: int = 2) -> Any:
        """A value that may be a key."""
        match self.randrange(15 if depth else 12):
            case 0:
                return None
            case 1:
                return self.often()
            case 2 | 3:
                return self.number()
            case 4:
                return self.one_of(_INTERESTING_FLOATS)
            case 5 | 6:
                return self.text()
            case 7:
                return self.blob()
            case 8:
                return Decimal(self.one_of(("0", "-0", "1.50", "1E+5", "Infinity", "NaN")))
            case 9:
                return uuid.UUID(bytes=self.randbytes(16))
            case 10:
                zone = self.one_of((None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=2), "X")))
                time = datetime.datetime(self.randint(1, 9999), 2, 3, 4, 5, 6, self.randint(0, 999_999), zone)
                return time.date() if self.often(0.3) else time.replace(fold=self.randint(0, 1))
            case 11:
                start = self.randint(-(2**40), 2**40)
                return self.one_of(
                    (
                        GlobalWindow(),
                        Timestamp.from_micros(start),
                        IntervalWindow.from_micros(start, start + self.randint(1, 2**30)),
                    )
                )
            case 12:
                return tuple(self.key(depth - 1) for _ in range(self.randint(0, 3)))
            case 13:
                return [self.key(depth - 1) for _ in range(self.randint(0, 3))]
            case _:
                return {self.text(3): self.key(depth - 1) for _ in range(self.randint(0, 3))}
