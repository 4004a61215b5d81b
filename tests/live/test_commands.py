"""Commands from the page: only with the token, only by POST, and only from the page itself."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.error import RunnerError
from penstock.options.pipeline_options import PipelineOptions
from penstock.options.spark import SparkOptions
from penstock_conformance import command, showing
from penstock_spark.checkpoints.custody.requests import Answer
from penstock_spark.live import views
from penstock_spark.live.server import LiveServer
from penstock_spark.live.snapshot_files import NAME
from tests.live.sample import stream

TOKEN = "a-token-that-is-long-enough"
Serve = Callable[..., LiveServer]


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def serve(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    monkeypatch.setattr("penstock_spark.live.server._WRONG_TOKEN_SECONDS", 0)
    servers: list[LiveServer] = []

    def send(name: str) -> Answer:
        asked.append(name)
        return Answer(True, f"the run does {name}")

    def start(token: str | None = TOKEN, send: Any = send) -> LiveServer:
        servers.append(LiveServer(lambda: stream(3), 0, token=token, send=send))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def post(
    server: LiveServer, path: str, token: str | None = TOKEN, method: str = "POST", **headers: str
) -> tuple[int, str, dict[str, str]]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        given["Penstock-Token"] = token
    request = urllib.request.Request(f"{server.url}{path}", method=method, headers=given)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), dict(error.headers)


def test_who_has_the_token_drains_and_cancels(serve: Serve, asked: list[str]) -> None:
    server = serve()
    assert post(server, "drain")[:2] == (200, "the run does drain\n")
    assert post(server, "cancel")[:2] == (200, "the run does cancel\n")
    assert asked == ["drain", "cancel"]
    assert post(server, "snapshot.json", method="GET")[2]["Penstock-Commands"] == "drain, cancel"


@pytest.mark.parametrize("token", [None, "", "a-token-that-is-long-enougH", TOKEN + "x", "tö"], ids=str)
def test_without_the_token_nothing_happens(serve: Serve, asked: list[str], token: str | None) -> None:
    assert post(serve(), "drain", token)[:2] == (403, "this is not the token of the run\n")
    assert asked == []


def test_a_page_without_a_token_only_shows(serve: Serve, asked: list[str]) -> None:
    server = serve(token=None)
    status, text, _ = post(server, "drain", "")
    assert (status, asked) == (403, [])
    assert "--live_token" in text
    assert "Penstock-Commands" not in post(server, "snapshot.json", method="GET")[2]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "OPTIONS"])
def test_no_other_method_has_an_effect(serve: Serve, asked: list[str], method: str) -> None:
    status, _, headers = post(serve(), "drain", method=method)
    assert (status in (404, 501), asked) == (True, [])
    assert not [name for name in headers if name.startswith("Access-Control")]


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example:80"}],
    ids=["another site", "a page without a site", "a name of another site"],
)
def test_a_page_of_another_site_cannot_command(
    serve: Serve, asked: list[str], headers: dict[str, str]
) -> None:
    assert post(serve(), "cancel", **headers)[0] == 403
    assert asked == []


def test_the_page_itself_is_such_a_site(serve: Serve, asked: list[str]) -> None:
    server = serve()
    assert post(server, "cancel", Origin=server.url.rstrip("/"))[0] == 200
    assert asked == ["cancel"]


def test_a_command_that_does_not_exist_is_not_sent(serve: Serve, asked: list[str]) -> None:
    assert [post(serve(), path)[0] for path in ("signal", "", "drain?x=1", "snapshot.json")] == [404] * 4
    assert asked == []


def test_what_the_run_refuses_is_told(serve: Serve) -> None:
    def gone(name: str) -> Answer:
        raise RunnerError("no run holds the checkpoint", hint="start its program")

    status, text, _ = post(serve(send=gone), "drain")
    assert (status, "no run holds the checkpoint" in text) == (409, True)
    assert post(serve(send=lambda _: Answer(False, "not now")), "drain")[:2] == (409, "not now\n")
    assert post(serve(send=None), "drain")[0] == 409


def settings(*flags: str) -> SparkOptions:
    return PipelineOptions(list(flags)).view_as(SparkOptions)


def test_the_token_is_an_option_or_a_variable_and_never_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(views.TOKEN_VARIABLE, "short")
    with pytest.raises(ValueError, match="PENSTOCK_LIVE_TOKEN has 5 characters"):
        views.views_of(settings("--live_port=0"), False)
    monkeypatch.setenv(views.TOKEN_VARIABLE, TOKEN)
    opened = views.views_of(settings("--live_port=0"), False)
    [page] = opened.shown
    assert isinstance(page, views.Page)
    assert page.server.token == TOKEN
    # Before the run has a checkpoint, and after its end, it takes no commands.
    assert page.server.send is None
    page.take_commands(lambda _: Answer(True, "done"))
    assert page.server.send is not None
    page.close()
    assert page.server.send is None
    page.server.close()
    [error] = [each for each in _errors("--live_token=short", "--live_port=0") if "live_token" in each]
    assert "live_token has 5 characters" in error
    assert any("without a live_port" in each for each in _errors(f"--live_token={TOKEN}"))


def _errors(*flags: str) -> list[str]:
    from penstock.options.pipeline_options_validator import PipelineOptionsValidator

    return PipelineOptionsValidator(settings(*flags), None).validate()


def test_the_command_that_shows_a_kept_snapshot_takes_a_token_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / NAME).write_text(stream(3).to_json(), encoding="utf-8")
    assert command.main(["live", "--from", str(tmp_path), "--token", "short"]) == 2
    assert "the token has 5 characters" in capsys.readouterr().err
    # A copy of the file says nothing of its checkpoint.
    assert showing._sender(str(tmp_path / NAME)) is None
    send = showing._sender(str(tmp_path))
    assert send is not None
    with pytest.raises(ValueError, match="not a penstock checkpoint"):
        send("drain")
