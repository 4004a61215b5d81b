"""Four of Beam's own examples run with nothing but their imports changed, and give what the data says."""

import glob
import importlib.util
import json
import statistics
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import penstock
import penstock.io
from penstock.transforms.core import Create, Map
from penstock.transforms.ptransform import PTransform

examples = pytest.importorskip("apache_beam.examples")
pytestmark = [
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

HOUR = 3600
EVENTS = [
    # user, team, score, second
    *(("ann", "blue", 4, 100 + 60 * minute) for minute in range(30)),
    *(("bob", "red", 7, 200 + 90 * minute) for minute in range(60)),
    *((f"user{number}", "red", 1, HOUR + number) for number in range(20)),
    ("bot", "blue", 900, HOUR + 30),
]
LINES = [f"{user},{team},{score},{second * 1000},read" for user, team, score, second in EVENTS]


def example(name):
    """One of Beam's examples, as a program that imports penstock."""
    path = Path(examples.__path__[0]) / "complete" / f"{name}.py"
    text = path.read_text(encoding="utf-8").replace("apache_beam", "penstock")
    spec = importlib.util.spec_from_loader(f"beam_example_{path.stem}", loader=None)
    module = importlib.util.module_from_spec(spec)
    exec(compile(text, path, "exec"), module.__dict__)
    return module


class WriteRows(PTransform):
    """Stands for BigQuery: a table is a file of JSON lines."""

    def __init__(self, table, dataset, project, schema):
        super().__init__()
        assert project == "a-project"
        self.path = f"{dataset}/{table}"

    def expand(self, pcoll):
        return pcoll | Map(json.dumps) | penstock.io.WriteToText(self.path)


@pytest.fixture
def cloud(monkeypatch, tmp_path):
    """Stand-ins for the cloud's services, and what reads a table."""
    monkeypatch.setattr(penstock.io, "WriteToBigQuery", WriteRows, raising=False)
    messages = [line.encode() for line in LINES]
    monkeypatch.setattr(penstock.io, "ReadFromPubSub", lambda topic: Create(messages), raising=False)

    def rows(table):
        files = glob.glob(f"{tmp_path}/{table}-*-of-*")
        return [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]

    return rows


def sums(key_of, events=EVENTS):
    totals = Counter()
    for event in events:
        totals[key_of(event)] += event[2]
    return totals


def team_and_hour(event):
    return event[1], event[3] // HOUR


def found_by_team(rows):
    """The last total of each team and hour; the local time of the window tells the hour's order."""
    starts = sorted({row["window_start"] for row in rows})
    latest = {}
    for row in rows:
        key = row["team"], starts.index(row["window_start"])
        latest[key] = max(latest.get(key, 0), row["total_score"])
    return latest


def test_hourly_team_score(cloud, tmp_path):
    (tmp_path / "in.csv").write_text("\n".join([*LINES, "no event"]))
    arguments = [f"--input={tmp_path}/in.csv", f"--dataset={tmp_path}", "--project=a-project"]
    example("game/hourly_team_score").run(arguments)
    assert found_by_team(cloud("leader_board")) == sums(team_and_hour)


def test_leader_board(cloud, tmp_path):
    arguments = ["--topic=games", f"--dataset={tmp_path}", "--project=a-project", "--region=here"]
    example("game/leader_board").run(arguments)
    assert found_by_team(cloud("leader_board_teams")) == sums(team_and_hour)
    # Users' totals are given at every tenth event, and what is left after that is given at the end of the input.
    users = defaultdict(int)
    for row in cloud("leader_board_users"):
        users[row["user"]] = max(users[row["user"]], row["total_score"])
    assert users == sums(lambda event: event[0])


def test_game_stats(cloud, tmp_path):
    arguments = ["--topic=games", f"--dataset={tmp_path}", "--project=a-project"]
    example("game/game_stats").run(arguments)
    honest = []
    for hour in {event[3] // HOUR for event in EVENTS}:
        of_hour = [event for event in EVENTS if event[3] // HOUR == hour]
        by_user = sums(lambda event: event[0], of_hour)
        limit = 2.5 * statistics.mean(by_user.values())
        honest += [event for event in of_hour if by_user[event[0]] <= limit]
    assert 0 < len(honest) < len(EVENTS)
    assert found_by_team(cloud("game_stats_teams")) == sums(team_and_hour, honest)
    assert all(row["mean_duration"] >= 300 for row in cloud("game_stats_sessions"))


def test_top_wikipedia_sessions(tmp_path):
    edits = [("ann", 0), ("ann", 10), ("ann", 20), ("bob", 5), ("bob", 2 * HOUR)]
    lines = [json.dumps({"contributor_username": user, "timestamp": second}) for user, second in edits]
    (tmp_path / "edits.json").write_text("\n".join(lines))
    arguments = [f"--input={tmp_path}/edits.json", f"--output={tmp_path}/out", "--sampling_threshold=1.0"]
    example("top_wikipedia_sessions").run(arguments)
    written = [line for file in glob.glob(f"{tmp_path}/out*") for line in Path(file).read_text().splitlines()]
    month = 30 * 24 * HOUR
    assert sorted(written) == sorted(
        f"{user} : [{start}.0, {end}.0) : {count} : [0.0, {month}.0)"
        for user, start, end, count in (
            ("ann", 0, HOUR + 20, 3),
            ("bob", 5, HOUR + 5, 1),
            ("bob", 2 * HOUR, 3 * HOUR, 1),
        )
    )
