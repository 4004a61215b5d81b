"""A cluster of Kafka in a process of its own, which a fault can stop.

It says where it listens, and ends with its input.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from tests.connectors.brokers import Mock

    mock = Mock()
    mock.make("numbers")
    print(mock.servers, flush=True)
    sys.stdin.read()
