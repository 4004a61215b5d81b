"""The example that asks a service: a server that is slow, often busy, and sometimes does not know."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from urllib.parse import parse_qs, urlsplit

import pytest

SECONDS_A_CALL = 0.05
UNKNOWN = "192.0.2.66"


class Service(ThreadingHTTPServer):
    """Counts what it is asked. Every tenth address gets one 503 first; one address gets nothing but 503."""

    request_queue_size = 128
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.lock = threading.Lock()
        self.asked: Counter[str] = Counter()
        self.times: list[float] = []
        self.under_way = self.most_under_way = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def status_for(self, address: str) -> int:
        with self.lock:
            self.asked[address] += 1
            self.times.append(time.perf_counter())
            times = self.asked[address]
        is_busy = address == UNKNOWN or (address.endswith("0") and times == 1)
        return 503 if is_busy else 200


class Answering(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        server = self.server
        with server.lock:
            server.under_way += 1
            server.most_under_way = max(server.most_under_way, server.under_way)
        time.sleep(SECONDS_A_CALL)
        (address,) = parse_qs(urlsplit(self.path).query)["ip"]
        body = f"Country{address.rpartition('.')[2]}".encode()
        self.send_response(server.status_for(address))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        with server.lock:
            server.under_way -= 1

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def service() -> Iterator[Service]:
    server = Service()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_every_line_is_enriched_although_the_service_is_slow_and_busy(tmp_path, service):
    enrich = import_module("enrich")
    lines = [f"192.0.2.{number} /page{visit}" for visit in (1, 2) for number in range(200)]
    (tmp_path / "visits.txt").write_text("\n".join(lines) + "\n")
    enrich.run(
        [f"--service={service.url}", f"--input={tmp_path}/visits.txt", f"--output={tmp_path}/out/visits"]
    )
    found = [line for file in tmp_path.glob("out/visits-*.txt") for line in file.read_text().splitlines()]
    lost = [line for file in tmp_path.glob("out/visits_lost-*") for line in file.read_text().splitlines()]
    known = [line for line in lines if not line.startswith(f"{UNKNOWN} ")]
    assert sorted(found) == sorted(f"Country{line.split()[0].rpartition('.')[2]} {line}" for line in known)
    assert [line.split("\t")[0] for line in sorted(lost)] == [f"{UNKNOWN} /page1", f"{UNKNOWN} /page2"]
    assert all("503" in line for line in lost)
    assert len(service.times) * SECONDS_A_CALL > 10, (
        "one after another, the calls take longer than ten seconds"
    )
    assert max(service.times) - min(service.times) < 4
    assert 30 <= service.most_under_way <= 200
    # The cache asks once for each address, again after a 503, and more often only where two tasks share an address.
    assert all(service.asked[f"192.0.2.{number}"] >= 2 for number in range(0, 200, 10))
    assert service.asked[UNKNOWN] >= 5
