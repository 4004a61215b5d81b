"""Jobs in SQL: what is refused before anything runs, what is bound, and the steps that are built."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.construction.pipeline import Pipeline
from penstock.options.pipeline_options import SparkOptions
from penstock.runners.runner import PipelineRunner
from penstock.scalars.types import BIGINT, STRING, TIMESTAMP
from penstock.sql.errors import SqlError
from penstock.sql.jobs import binding
from penstock.sql.jobs.binding import bind_job
from penstock.sql.jobs.bound import PrintQuery, RunInserts
from penstock.sql.jobs.building import JobPipeline
from penstock.sql.jobs.running import Job, run_command
from penstock.sql.plan.relations import ColumnDef
from penstock.sql.statements.forms import CreateTable, Select
from penstock.sql.statements.parsing import parse_script
from penstock.sql.statements.words import Script, split_statements
from penstock.sql.tables.connectors import CONNECTORS, stream_settings
from penstock.sql.tables.transforms import find_files_of
from penstock_conformance.program_graphs import pipeline_of_program

GOALS = """CREATE TABLE goals (team STRING, points BIGINT, at TIMESTAMP,
  WATERMARK FOR at AS at - INTERVAL '5' SECONDS) WITH (format = 'csv', path = '/data/goals', header = 'true');
CREATE TABLE totals (team STRING, total BIGINT) WITH (format = 'parquet', path = '/data/totals');
"""

EXAMPLES = Path(__file__).parents[2] / "examples"
REFUSALS = Path(__file__).with_name("job_refusals.txt")


@pytest.fixture(autouse=True)
def _forgotten_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forgets the modules of functions, whose names other tests also use."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield
    for name in {"scores", "broken"} - before:
        sys.modules.pop(name, None)


def cases() -> Iterator[object]:
    """The cases of a file: a title, statements after GOALS, and the error."""
    for block in REFUSALS.read_text(encoding="utf-8").split("\n### ")[1:]:
        title, _, rest = block.partition("\n")
        statements, _, error = rest.partition("\n---\n")
        yield pytest.param(statements.strip(), error.strip(), id=title.strip())


@pytest.mark.parametrize(("statements", "error"), list(cases()))
def test_a_statement_that_is_wrong_is_refused_with_its_place(
    statements: str, error: str, tmp_path: Path
) -> None:
    (tmp_path / "scores.py").write_text("def stars(n: int) -> str:\n    return '*' * n\n")
    (tmp_path / "broken.py").write_text("raise RuntimeError('no key')\n")
    with pytest.raises(SqlError) as raised:
        Job(GOALS + statements, "job.sql", folder=tmp_path)
    assert str(raised.value) == error


def test_words_are_split_as_the_parser_of_queries_splits_them() -> None:
    text = r"""SELECT 'a;''b', "c;\"d", `e;``f`, r'\' /* g; /* h; */ */ -- i;
    , 1.5e3;; SET a.b-c = -3"""
    first, second = split_statements(Script(text))
    assert first.start == 0
    assert [word.text for word in first._words if word.kind in ("string", "name")] == [
        "a;'b",
        'c;"d',
        "e;`f",
        "\\",
    ]
    assert second.take().text == "SET"


def test_an_error_of_a_query_tells_its_line_in_the_file() -> None:
    script = Script("SET mode = batch;\n\n  SELECT 1,\n  2 +", "job.sql")
    [_, select] = parse_script(script)
    assert isinstance(select, Select)
    assert select.query.text.count("\n") == 3
    with pytest.raises(SqlError, match=r"line 4, column \d+ of job.sql"):
        bind_job(script, {})


def test_all_statements_that_insert_are_one_pipeline() -> None:
    script = Script(
        GOALS
        + """SELECT COUNT(*) AS n FROM goals;
        INSERT INTO totals SELECT team, SUM(points) FROM goals GROUP BY team;
        SELECT team FROM totals;
        INSERT INTO totals (total, team) SELECT points, team FROM goals;
        CREATE TABLE copy WITH (format = 'json', path = '/data/copy') AS SELECT team AS t FROM goals;"""
    )
    first, inserts, second = bind_job(script, {"mode": "batch"})
    assert isinstance(first, PrintQuery)
    assert isinstance(second, PrintQuery)
    assert isinstance(inserts, RunInserts)
    assert [each.table.name for each in inserts.inserts] == ["totals", "totals", "copy"]
    positional, named, made = (each.filling for each in inserts.inserts)
    assert positional.scalars == ("`team`", "`column_2` AS `total`")
    assert named.scalars == ("`team`", "`points` AS `total`")
    assert made.scalars is None
    assert made.columns == (ColumnDef("t", STRING),)


def steps_of(text: str, folder: Path, **options: object) -> list[str]:
    """The labels of the steps of the pipeline that inserts."""
    (folder / "goals").mkdir(exist_ok=True)
    (folder / "goals" / "a.csv").write_text("team,points,at\n")
    actions = bind_job(Script(text.replace("/data", str(folder))), options)
    [inserts] = [each for each in actions if isinstance(each, RunInserts)]
    streams = any(each.query.streams(inserts.options) for each in inserts.inserts)
    built = JobPipeline(inserts.options, streams, False, {})
    for insert in inserts.inserts:
        built.insert(insert)
    return [part.full_label for part in built.pipeline.root_transform().parts]


def test_labels_come_from_names_and_not_from_places(tmp_path: Path) -> None:
    loud = "CREATE TABLE loud WITH (format = 'json', path = '/data/loud') AS SELECT team FROM goals;"
    quiet = "INSERT INTO totals SELECT team, points FROM goals;"
    first = steps_of(GOALS + loud + quiet, tmp_path)
    second = steps_of(GOALS + quiet + loud, tmp_path)
    assert first == ["Table goals", "Insert loud", "Write loud", "Insert totals", "Write totals"]
    assert sorted(first) == sorted(second)


def test_a_materialized_view_is_computed_once_for_all_that_read_it(tmp_path: Path) -> None:
    windows = """SELECT window_end, team, SUM(points) AS total
    FROM TUMBLE(TABLE goals, DESCRIPTOR(at), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, team"""
    statements = f"""{GOALS} CREATE MATERIALIZED VIEW minutes AS {windows} EMIT AFTER WATERMARK;
    INSERT INTO totals SELECT team, total FROM minutes;
    CREATE TABLE high WITH (format = 'json', path = '/data/high') AS SELECT team FROM minutes WHERE total > 3;"""
    steps = steps_of(statements, tmp_path)
    assert steps == [
        "Table goals",
        "View minutes",
        "Insert totals",
        "Write totals",
        "Insert high",
        "Write high",
    ]
    # In a batch, each query goes whole to Spark.
    assert "View minutes" not in steps_of(statements, tmp_path, mode="batch")
    plain = steps_of(statements.replace("MATERIALIZED ", ""), tmp_path)
    assert "View minutes" not in plain


@pytest.mark.parametrize("name", sorted(set(CONNECTORS) - {"print", "noop"}))
def test_settings_of_streams_belong_to_what_reads(name: str) -> None:
    settings = stream_settings(CONNECTORS[name])
    assert {"arrival_time", "existing_only", "max_records_per_batch"} <= set(settings)
    assert not {"event_time", "watermark", "rejects"} & set(settings)


def test_declared_tables_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    statements = f"""{GOALS} CREATE VIEW winners AS SELECT team AS name FROM goals;
    CREATE TABLE scores (team STRING NOT NULL PRIMARY KEY NOT ENFORCED, at TIMESTAMP)
    PARTITIONED BY (team) WITH (connector = 'database', url = 'sqlite:///secret', 'table' = 'scores');
    SHOW TABLES; SHOW VIEWS; SHOW FUNCTIONS; DESCRIBE goals; DESCRIBE winners; SHOW CREATE TABLE scores"""
    Job(statements).run()
    expected = """
    table  | connector
    -------+----------
    goals  | csv
    totals | parquet
    scores | database
    view
    -------
    winners
    function | kind | type
    ---------+------+-----
    column | type      | note
    -------+-----------+---------------------------
    team   | STRING    |
    points | BIGINT    |
    at     | TIMESTAMP | watermark 5 seconds behind
    column | type   | note
    -------+--------+-----
    name   | STRING |
    CREATE TABLE `scores` (
      `team` STRING NOT NULL,
      `at` TIMESTAMP,
      PRIMARY KEY (`team`) NOT ENFORCED
    ) PARTITIONED BY (`team`) WITH (
      'connector' = 'database',
      'url' = …,
      'table' = 'scores'
    )
    """
    assert capsys.readouterr().out.rstrip() == textwrap.dedent(expected).strip()


def test_values_of_settings_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """CREATE TABLE t (a INT) WITH (connector = 'database', url = '${HERE}', 'table' = 't');
    INSERT INTO t VALUES (1)"""
    monkeypatch.setenv("HERE", "sqlite:///here.db")
    [inserts] = bind_job(Script(text), {})
    assert isinstance(inserts, RunInserts)
    assert inserts.inserts[0].table.writing["url"] == "sqlite:///here.db"
    monkeypatch.delenv("HERE")
    with pytest.raises(SqlError, match="the environment has no variable HERE"):
        bind_job(Script(text), {})


def test_options_of_the_command_line_win_over_set() -> None:
    script = Script("SET parallelism = 4; SET spark.ui.enabled = false; SELECT 1 AS one")
    [query] = bind_job(script, {"shuffle_partitions": 8})
    assert isinstance(query, PrintQuery)
    assert query.options == {"shuffle_partitions": 8, "spark_conf": ["spark.ui.enabled=false"]}


def test_spark_is_asked_for_columns_with_the_settings_of_the_whole_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[dict[str, object]] = []

    class Asked(Pipeline):
        def __init__(self, **options: object) -> None:
            asked.append(options)
            super().__init__(runner=PipelineRunner(), **options)

    monkeypatch.setattr(binding, "Pipeline", Asked)
    (tmp_path / "a.csv").write_text("team\nblue\n")
    text = f"""SET checkpoint = '/data/checkpoint';
    CREATE TABLE t WITH (format = 'csv', path = '{tmp_path}', header = 'true');
    CREATE VIEW v AS SELECT * FROM t; SET spark.ui.enabled = false; SET mode = batch; SELECT * FROM v"""
    with pytest.raises(SqlError, match="the columns of the table 't' are unknown"):
        bind_job(Script(text), {"shuffle_partitions": 8})
    assert asked == [{"spark_conf": ["spark.ui.enabled=false"], "shuffle_partitions": 8}]


def test_only_the_pipeline_that_inserts_has_the_checkpoint() -> None:
    text = (
        GOALS
        + "SET checkpoint = '/data/checkpoint'; SELECT team FROM goals; INSERT INTO totals SELECT team, 1 FROM goals"
    )
    query, inserts = bind_job(Script(text), {})
    assert isinstance(query, PrintQuery)
    assert isinstance(inserts, RunInserts)
    assert "checkpoint_location" not in query.options
    assert inserts.options["checkpoint_location"] == "/data/checkpoint"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.sql")), ids=lambda path: path.name)
def test_the_jobs_of_the_examples_are_bound(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    monkeypatch.setenv("GOALS", str(tmp_path))
    labels = [part.full_label for part in pipeline_of_program(path).root_transform().parts]
    assert sum(label.startswith("Write ") for label in labels) == path.read_text().count("\nINSERT INTO")


@pytest.mark.parametrize(
    ("table", "query", "mode"),
    [
        ("", "SELECT team FROM shots WINDOWS EMIT AFTER WATERMARK", "batch"),
        ("max_files_per_batch = 1", "SELECT team FROM shots WINDOWS EMIT AFTER WATERMARK", "batch"),
        ("max_files_per_batch = 1", "SELECT team FROM shots WINDOWS", None),
        (
            "max_files_per_batch = 1",
            "SELECT team FROM shots WINDOWS EMIT AFTER WATERMARK AND THEN AFTER 0 SECONDS",
            None,
        ),
        ("arrival_time = 'at'", "SELECT team FROM shots WINDOWS EMIT AFTER WATERMARK", None),
        (
            "max_files_per_batch = 1",
            "SELECT g.team, g.at FROM goals AS g JOIN shots AS s ON g.team = s.team EMIT WHEN WATERMARK PAST at",
            None,
        ),
        (
            "max_files_per_batch = 1",
            "SELECT COUNT(*) AS n FROM shots GROUP BY TUMBLE(Sys.MTime, INTERVAL '1' MINUTE) EMIT AFTER WATERMARK",
            None,
        ),
    ],
)
def test_a_query_over_a_table_without_a_watermark_may_wait_for_none(
    table: str, query: str, mode: str | None
) -> None:
    declared = (
        f"CREATE TABLE shots (team STRING, at TIMESTAMP) WITH (format = 'json', path = '/shots', {table});"
    )
    windows = "GROUP BY team, TUMBLE(at, INTERVAL '1' MINUTE)"
    text = f"{GOALS}{declared.replace(', )', ')')} {query.replace('WINDOWS', windows)}"
    assert bind_job(Script(text), {} if mode is None else {"mode": mode})


def test_steps_are_of_the_lines_of_their_statements(tmp_path: Path) -> None:
    text = f"""{GOALS}
CREATE MATERIALIZED VIEW known AS

  SELECT * FROM goals WHERE team IS NOT NULL;
INSERT INTO totals
SELECT team, points FROM known;"""
    (tmp_path / "job.sql").write_text(text)
    lines = {
        step.label.partition("/")[0]: str(step.location)
        for step in pipeline_of_program(tmp_path / "job.sql").to_graph().steps
    }
    assert lines == {
        "Table goals": "job.sql:1",
        "View known": "job.sql:7",
        "Insert totals": "job.sql:9",
        "Write totals": "job.sql:8",
    }
    # A text without a name is in a program, whose line says more.
    job = Job(text)
    assert job.pipeline is not None
    assert {str(step.location).partition(":")[0] for step in job.pipeline.to_graph().steps} == {
        "test_jobs.py"
    }


def test_update_and_graph_find_the_pipeline_that_inserts(tmp_path: Path) -> None:
    (tmp_path / "goals").mkdir()
    (tmp_path / "goals" / "a.csv").write_text("team,points,at\n")
    job = tmp_path / "job.sql"
    job.write_text(
        f"{GOALS} SET checkpoint = '/data/old'; SELECT 1 AS one; INSERT INTO totals SELECT team, 1 FROM goals".replace(
            "/data", str(tmp_path)
        )
    )
    pipeline = pipeline_of_program(job, ["--checkpoint_location=/new", "--take_over"])
    labels = [part.full_label for part in pipeline.root_transform().parts]
    assert labels == ["Table goals", "Insert totals", "Write totals"]
    assert pipeline.options.view_as(SparkOptions).checkpoint_location == "/new"
    job.write_text("SELECT 1 AS one")
    with pytest.raises(ValueError, match=r"the program job.sql has run no pipeline[^!]*or a job with INSERT"):
        pipeline_of_program(job)


def test_a_file_that_is_not_there_and_an_option_that_is_none_are_named() -> None:
    with pytest.raises(ValueError, match=r"the job 'absent.sql' cannot be read: No such file or directory"):
        run_command("absent.sql", [])
    with pytest.raises(
        ValueError, match=r"there is no option --checkpont\n  hint: did you mean --checkpoint\?"
    ):
        run_command("SELECT 1", ["--checkpont=/data"])


def test_the_files_of_a_folder_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.d").mkdir()
    assert find_files_of(f"{tmp_path}/a.d/") == f"{tmp_path}/a.d/*"
    assert find_files_of("s3://lake/goals") == "s3://lake/goals/*"


def test_tables_may_be_declared_as_in_spark() -> None:
    [spark] = parse_script(
        Script(
            """CREATE TABLE goals (team STRING, day DATE) USING csv OPTIONS (header 'true', 'sep' = ';')
            PARTITIONED BY (day) LOCATION '/data/goals' COMMENT 'all'"""
        )
    )
    [own] = parse_script(
        Script(
            """CREATE TABLE goals (team STRING, day DATE) PARTITIONED BY (day)
            WITH (format = 'csv', header = 'true', sep = ';', path = '/data/goals')"""
        )
    )
    assert isinstance(spark, CreateTable)
    assert isinstance(own, CreateTable)
    assert [(each.name, each.value) for each in spark.options] == [
        (each.name, each.value) for each in own.options
    ]
    assert spark.partition_by == own.partition_by == ("day",)


def test_types_of_declared_columns() -> None:
    [inserts] = bind_job(Script(GOALS + "INSERT INTO totals SELECT team, points FROM goals"), {})
    assert isinstance(inserts, RunInserts)
    [table] = inserts.inserts[0].query.tables.values()
    assert table.types == (ColumnDef("team", STRING), ColumnDef("points", BIGINT), ColumnDef("at", TIMESTAMP))


KAFKA = "connector = 'kafka', properties.bootstrap.servers = 'host:9092', format = 'json'"
COLUMNS = "(team STRING, total BIGINT)"
KEYED = "(team STRING, total BIGINT, PRIMARY KEY (TEAM) NOT ENFORCED)"
SINKS = {
    "orc": f"{COLUMNS} PARTITIONED BY (team) WITH (format = 'orc', path = '/data/o', compression = 'zstd')",
    "avro": f"{COLUMNS} WITH (format = 'avro', path = '/data/o', codec = 'null')",
    "text": "(value STRING) WITH (format = 'text', path = '/data/o')",
    "delta": f"{COLUMNS} WITH (connector = 'delta', path = '/data/o', storage_options.region = 'here')",
    "delta by key": f"{KEYED} WITH (connector = 'delta', path = '/data/o')",
    "iceberg by key": f"{KEYED} WITH (connector = 'iceberg', 'table' = 'lake.o', catalog.uri = 'http://here')",
    "iceberg": "WITH (connector = 'iceberg', 'table' = 'lake.o', catalog = 'prod')",
    "kafka": f"{COLUMNS} WITH ({KAFKA}, topic = 'o', exactly_once = true, transactions = 2)",
    "kafka by key": f"{KEYED} WITH ({KAFKA}, topic = 'o')",
    "print": "WITH (connector = 'print', prefix = '> ')",
    "noop": "WITH (connector = 'noop')",
    "spark": f"{COLUMNS} WITH (connector = 'spark', spark_format = 'xml', path = '/data/o', rowTag = 'goal')",
    "jdbc": "(team STRING, total INT) WITH (connector = 'jdbc', url = 'sqlite:///o.db', 'table' = 'o')",
}


@pytest.mark.parametrize("name", SINKS)
def test_each_connector_is_a_sink(name: str, tmp_path: Path) -> None:
    query = "SELECT team FROM goals" if name == "text" else "SELECT team, points AS total FROM goals"
    steps = steps_of(f"{GOALS} CREATE TABLE o {SINKS[name]}; INSERT INTO o {query}", tmp_path)
    assert steps == ["Table goals", "Insert o", "Write o"]


@pytest.mark.parametrize("name", ["delta by key", "iceberg by key", "kafka by key", "print"])
def test_some_connectors_take_rows_that_change(name: str, tmp_path: Path) -> None:
    query = "SELECT team, SUM(points) AS total FROM goals GROUP BY team"
    steps = steps_of(f"{GOALS} CREATE TABLE o {SINKS[name]}; INSERT INTO o {query}", tmp_path)
    assert steps == ["Table goals", "Insert o", "Write o"]
    with pytest.raises(SqlError, match="only adds rows"):
        steps_of(f"{GOALS} CREATE TABLE o {SINKS['kafka']}; INSERT INTO o {query}", tmp_path)


@pytest.mark.parametrize(
    "declared",
    [
        f"""(team STRING, points BIGINT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '1' MINUTE)
        WITH ({KAFKA}, topic = 'a,b', idle_timeout = '1 minute', per_partition = true, rejects = '/data/bad')""",
        f"(team STRING, points BIGINT) WITH ({KAFKA}, topic_pattern = 'o.*', start_offsets = 'latest')",
        "(team STRING, points BIGINT) WITH (connector = 'delta_changes', path = '/data/o', starting_version = 3)",
        "(team STRING, points BIGINT, at TIMESTAMP) "
        "WITH (format = 'json', path = '/data/goals', arrival_time = 'at', tick = '5 seconds')",
    ],
    ids=["kafka", "topics by a pattern", "changes of delta", "a recorded log"],
)
def test_sources_that_are_streams(declared: str, tmp_path: Path) -> None:
    statements = f"CREATE TABLE i {declared}; CREATE TABLE o WITH (connector = 'print') AS SELECT team FROM i"
    assert steps_of(statements, tmp_path) == ["Table i", "Insert o", "Write o"]


def test_rows_that_wait_for_the_watermark_are_only_added(tmp_path: Path) -> None:
    join = """CREATE TABLE names (team STRING, name STRING) WITH (format = 'csv', path = '/data/names');
    CREATE TABLE o WITH (format = 'json', path = '/data/o') AS
    SELECT name, points, at FROM goals LEFT JOIN names ON names.team = goals.team"""
    past = steps_of(f"{GOALS} {join} EMIT WHEN WATERMARK PAST at", tmp_path)
    assert past == ["Table goals", "Table names", "Insert o", "Write o"]
    for clause in ("", "EMIT WHEN WATERMARK PAST at AND THEN AFTER 0 SECONDS", "EMIT AFTER 5 SECONDS"):
        with pytest.raises(SqlError, match="only adds rows"):
            steps_of(f"{GOALS} {join} {clause}", tmp_path)


def test_what_a_stream_has_written_is_read_if_it_ends() -> None:
    statements = "INSERT INTO totals SELECT team, points FROM goals; SELECT * FROM totals"
    ending = GOALS.replace("header =", "existing_only = true, header =")
    inserts, query = bind_job(Script(ending + statements), {})
    assert isinstance(inserts, RunInserts)
    assert isinstance(query, PrintQuery)
    with pytest.raises(SqlError, match="is read when that has ended"):
        bind_job(Script(GOALS + statements), {})


def test_what_would_run_is_explained(tmp_path: Path) -> None:
    (tmp_path / "goals").mkdir()
    (tmp_path / "goals" / "a.csv").write_text("team,points,at\n")
    shown: list[str] = []
    statements = "EXPLAIN SELECT team FROM goals; EXPLAIN INSERT INTO totals SELECT team, points FROM goals"
    Job((GOALS + statements).replace("/data", str(tmp_path)), show=shown.append, mode="batch").run()
    query, insert = shown
    assert "computed by: Spark alone" in query
    assert "write 'Keep'" in query
    assert f"write 'Write totals/Write' = Write(spark parquet {tmp_path}/totals)" in insert


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_windowed_sums_of_typed_files_are_sparks(form: str, tmp_path: Path) -> None:
    moment = pa.array([0], pa.timestamp("us", "UTC"))
    table = pa.table({"team": ["a"], "points": [3], "other": [0], "at": moment})
    pq.write_table(table, tmp_path / "goals.parquet")
    script = f"""
        CREATE TABLE played (team STRING, points BIGINT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5' SECONDS)
        WITH (format = '{form}', path = '{tmp_path}');
        CREATE TABLE hours (start TIMESTAMP, team STRING, total BIGINT)
        WITH (format = 'parquet', path = '{tmp_path}/out');
        EXPLAIN INSERT INTO hours SELECT window_start, team, SUM(points)
        FROM TUMBLE(TABLE played, DESCRIPTOR(at), INTERVAL '1' HOUR)
        GROUP BY window_start, window_end, team EMIT AFTER WATERMARK"""
    shown: list[str] = []
    Job(script, show=shown.append).run()
    assert "'Write hours/Write' takes the columns unchanged" in shown[-1]
    assert "Insert hours/Group = CombinePerKey(ExpressionCombineFn)  # by Spark" in shown[-1]
