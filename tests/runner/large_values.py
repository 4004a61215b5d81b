"""Large values that count how many of them there are at a time."""

from __future__ import annotations

SIZE_BYTES = 1 << 20


class Content:
    """An object behind a name; the class counts how many there are at a time."""

    alive = 0
    most = 0

    def __init__(self, name: int) -> None:
        self.name = name
        self.content = bytes(SIZE_BYTES)
        Content.alive += 1
        Content.most = max(Content.most, Content.alive)

    def __del__(self) -> None:
        Content.alive -= 1
