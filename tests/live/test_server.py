"""The server of the page: what it serves, to whom, and what it does when it cannot."""

from __future__ import annotations

import json
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock_spark.live.prometheus import metrics_text
from penstock_spark.live.server import LiveServer, page
from penstock_spark.live.snapshot import RunSnapshot
from penstock_spark.live.snapshot_files import NAME, FollowedRun, read_snapshot
from tests.live.sample import HOSTILE, SUM, batch, hostile, stream

Serve = Callable[[RunSnapshot | None], LiveServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[LiveServer] = []

    def start(now: RunSnapshot | None) -> LiveServer:
        servers.append(LiveServer(lambda: now, 0))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def ask(server: LiveServer, path: str = "", host: str | None = None) -> tuple[int, str, dict[str, str]]:
    headers = {} if host is None else {"Host": host}
    request = urllib.request.Request(f"{server.url}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), dict(error.headers)


def test_the_page_is_small_whole_and_asks_nobody_else() -> None:
    assert len(page().encode()) <= 60_000
    assert re.findall(r"(?:src|href)=\"(?!/)[^\"]*\"|@import|url\(", page()) == []
    assert set(re.findall(r"https?://[^\s\"'`]+", page())) == {"http://www.w3.org/2000/svg"}
    # Labels become text, and never markup.
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", page())


def test_the_server_gives_the_page_the_snapshot_and_the_metrics(serve: Serve) -> None:
    now = stream(30)
    server = serve(now)
    status, text, headers = ask(server)
    assert (status, text) == (200, page())
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    status, text, headers = ask(server, "snapshot.json?now")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert RunSnapshot.from_json(text) == now
    status, text, headers = ask(server, "metrics")
    assert (status, text) == (200, metrics_text(now))
    assert ask(server, "etc/passwd")[0] == 404


def test_a_name_that_is_not_of_this_machine_is_refused(serve: Serve) -> None:
    server = serve(stream(5))
    assert ask(server, "snapshot.json", "evil.example:80")[0] == 403
    assert ask(server, "snapshot.json", f"localhost:{server.port}")[0] == 200


def test_it_listens_on_the_loopback_only(serve: Serve) -> None:
    assert serve(stream(5)).url.startswith("http://127.0.0.1:")


def test_before_the_run_begins_it_says_so(serve: Serve) -> None:
    server = serve(None)
    for path in ("snapshot.json", "metrics"):
        assert ask(server, path)[:2] == (503, "the run has not begun\n")


def test_a_port_that_is_taken_is_refused_with_a_hint() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ValueError, match=f"the port {port} for the live view is taken") as refused:
            LiveServer(lambda: None, port)
    assert "--live_port=0" in str(refused.value)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ValueError, match=r"cannot listen at 192\.0\.2\.1"):
        LiveServer(lambda: None, 0, "192.0.2.1")


def test_several_browsers_see_the_same(serve: Serve) -> None:
    server = serve(batch())
    assert ask(server, "snapshot.json")[1] == ask(server, "snapshot.json")[1]


SAMPLE = re.compile(r'^(penstock_[a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (-?[0-9.e+]+)$')


@pytest.mark.parametrize("now", [stream(40), batch(), hostile()], ids=["stream", "batch", "hostile"])
def test_metrics_are_in_the_format_of_prometheus(now: RunSnapshot) -> None:
    named: dict[str, str] = {}
    for line in metrics_text(now).splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in named, "a family stands together"
            named[name] = kind
        elif not line.startswith("# HELP "):
            match = SAMPLE.match(line)
            assert match, line
            assert match[1] in named
            assert (named[match[1]] == "counter") == match[1].endswith("_total")
    assert named["penstock_up"] == "gauge"


def test_metrics_tell_panes_by_timing_and_watermarks_by_side() -> None:
    now = stream(60)
    text = metrics_text(now)
    on_time = now.groupings[0].on_time
    assert f'penstock_panes_total{{run="{now.run}",grouping="{SUM}",timing="on_time"}} {on_time}' in text
    assert f'grouping="{SUM}",side="output"' in text


def test_metrics_tell_how_busy_a_stream_is_its_skew_and_the_size_of_its_checkpoint() -> None:
    now = stream(60)
    text = metrics_text(now)
    assert now.pace is not None
    assert f'penstock_busy_ratio{{run="{now.run}"}} {now.pace.busy_share:.15g}' in text
    assert f'penstock_checkpoint_bytes{{run="{now.run}",of="state"}} 911000' in text
    assert f'penstock_shard_skew{{run="{now.run}",grouping="{SUM}",of="keys"}} 2.666' in text
    assert "busy_ratio" not in metrics_text(batch())


def test_the_kept_snapshot_of_a_run_is_found_by_its_folder_or_its_file(tmp_path: Path) -> None:
    now = stream(20)
    (tmp_path / NAME).write_text(now.to_json(), encoding="utf-8")
    for place in (tmp_path, tmp_path / NAME, f"file://{tmp_path}"):
        assert read_snapshot(place) == now


def test_a_checkpoint_without_a_snapshot_or_of_another_version_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no live\.json") as refused:
        read_snapshot(tmp_path)
    assert "--live_port" in str(refused.value)
    other = {**json.loads(stream(3).to_json()), "penstock_snapshot": 7}
    (tmp_path / NAME).write_text(json.dumps(other), encoding="utf-8")
    with pytest.raises(ValueError, match="has the format 7") as refused:
        read_snapshot(tmp_path)
    assert f"in {tmp_path / NAME}" in str(refused.value)
    with pytest.raises(ValueError, match="from a disk of this machine, not from s3"):
        read_snapshot("s3://bucket/checkpoint")


def test_a_file_that_is_being_replaced_or_damaged_leaves_the_last_snapshot(tmp_path: Path) -> None:
    now = stream(5)
    (tmp_path / NAME).write_text(now.to_json(), encoding="utf-8")
    followed = FollowedRun(tmp_path)
    (tmp_path / NAME).write_text(now.to_json()[:100], encoding="utf-8")
    assert followed.look() == now
    (tmp_path / NAME).unlink()
    assert followed.look() == now
    later = stream(6)
    (tmp_path / NAME).write_text(later.to_json(), encoding="utf-8")
    assert followed.look() == later


def test_a_hostile_name_is_escaped_in_metrics() -> None:
    assert HOSTILE in metrics_text(hostile())
    assert '\\"' in metrics_text(RunSnapshot('a"\n', "r", "batch", "RUNNING", 0, 1))
