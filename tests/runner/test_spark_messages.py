"""The table of what Spark says, with texts that it has said, cut to the lines that differ."""

from __future__ import annotations

import logging

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException, UnknownException

import penstock as beam
from penstock_spark.reports.crash_marker import find_worker_death
from penstock_spark.reports.failure import StepFailure, mark
from penstock_spark.reports.reporting import Reporting, reports_of
from penstock_spark.reports.spark_errors import ErrorContext, translate
from penstock_spark.reports.spark_messages import CONDITIONS, MESSAGES
from penstock_spark.sources.spark_refusals import translate_spark_errors

TASK = (
    "An error occurred while calling o90.collectToPython.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 1.0 failed 1 times, "
    "most recent failure: Lost task 1.0 in stage 1.0 (TID 3) (10.0.0.1 executor driver): {}\n"
    "\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:4560)\n"
    "Caused by: {}\n"
    "\tat java.base/java.lang.Thread.run(Thread.java:840)\n"
)
STEP = "at step 'Write' (game.py:41)"
CHECKPOINT = "/data/checkpoint"


class Py4JJavaErrorOfText(Py4JError):
    """Reads as a ``Py4JJavaError`` does, without a Java."""


@pytest.fixture(autouse=True)
def _java_is_not_asked(monkeypatch):
    """The Java of other tests lives, and is not to be forgotten."""
    monkeypatch.setattr("penstock_spark.reports.spark_errors.explain_java_death", lambda error, where: None)


def graph():
    pipeline = beam.Pipeline()
    pipeline | "Lines" >> beam.io.ReadFromText("/data/in/*.txt", validate=False) | "Text" >> beam.Map(str)
    (
        pipeline
        | "Numbers" >> beam.io.ReadFromParquet("/data/numbers/*", validate=False)
        | "Shown" >> beam.Map(str)
    )
    return pipeline.to_graph()


SAID = {
    "the disk of the workers is full": (
        "java.io.IOException: No space left on device",
        "a disk is full",
        STEP,
        "free some space",
    ),
    "the process is gone that plans what a stream reads": (
        "java.io.EOFException\n"
        "\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:400)\n"
        "\tat org.apache.spark.sql.execution.python.streaming.PythonStreamingSourceRunner.latestOffset("
        "PythonStreamingSourceRunner.scala:272)",
        "the Python process in which Spark plans what a stream reads has died",
        STEP,
        "find what ends the process on the driver's machine",
    ),
    "the process is gone that tells Spark which state a stream has": (
        "java.net.SocketException: Connection reset\n"
        "\tat java.base/sun.nio.ch.SocketChannelImpl.throwConnectionReset(SocketChannelImpl.java:401)\n"
        "\tat org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkPythonPreInitRunner.process("
        "TransformWithStateInPySparkPythonRunner.scala:310)",
        "the Python process in which Spark reads the state of a stream has died",
        STEP,
        "find what ends the process on the driver's machine",
    ),
    "rows of a lost machine that are not the same again": (
        "org.apache.spark.SparkException: Job aborted due to stage failure: A shuffle map stage with indeterminate "
        "output was failed and retried. However, Spark cannot rollback the ResultStage 5 to re-process the input data, "
        "and has to fail this job. Please eliminate the indeterminacy by checkpointing the RDD before repartition.",
        "Spark lost a machine, and cannot recompute the same data",
        STEP,
        "run the program again",
    ),
    "somebody has tidied up where Spark keeps its shuffles": (
        "java.nio.file.NoSuchFileException: /tmp/spark-1e60/executor-9eb2/blockmgr-d6d8-597a/3f",
        "Spark's temporary files were deleted while the pipeline ran",
        STEP,
        "keep cleaners away from spark.local.dir",
    ),
    "the disk of the checkpoint is full": (
        "org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device",
        "a disk is full",
        STEP,
        "the checkpoint",
    ),
    "a checkpoint that may not be written": (
        "java.io.FileNotFoundException: /data/checkpoint/spark/offsets/.0.tmp (Read-only file system)",
        "has no permission to write or read /data/checkpoint/spark/offsets/.0.tmp",
        f"in the checkpoint {CHECKPOINT}",
        "check the permissions",
    ),
    "a state file that is gone": (
        "org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE] An error occurred "
        "during loading state. Error reading streaming state file of file:/data/checkpoint/spark/state/1/1/1.changelog "
        "does not exist. If the stream job is restarted with a new or updated state operation, please create a new "
        "checkpoint location or clear the existing checkpoint location. SQLSTATE: 58030",
        "the checkpoint is damaged: Spark cannot read /data/checkpoint/spark/state/1/1/1.changelog",
        f"in the checkpoint {CHECKPOINT}",
        "start again with another checkpoint_location",
    ),
    "a changelog that is cut off": (
        "org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading "
        "state.  SQLSTATE: 58030",
        "the checkpoint is damaged: Spark cannot read its own files there",
        f"in the checkpoint {CHECKPOINT}",
        "restore the folder",
    ),
    "a folder of state that is gone": (
        "org.apache.spark.sql.execution.streaming.state.StatefulOperatorMissingStateDirectory: "
        "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Cannot restart streaming query with stateful operators "
        "because the state directory is empty or missing.",
        "the checkpoint is damaged: Spark cannot read its own files there",
        f"in the checkpoint {CHECKPOINT}",
        "restore the folder",
    ),
    "a log of sources that was changed": (
        "org.apache.hadoop.fs.ChecksumException: Checksum error: file:/data/checkpoint/spark/sources/1/0 at 0 exp: "
        "-267894409 got: -1529400198",
        "the checkpoint is damaged: /data/checkpoint/spark/sources/1/0 has changed since Spark wrote it",
        f"in the checkpoint {CHECKPOINT}",
        "restore the folder",
    ),
    "a compressed file of which a part is there": (
        "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
        "file:///data/in/may%202.txt.gz.  SQLSTATE: KD001",
        "/data/in/may 2.txt.gz is damaged or incomplete",
        "at step 'Lines",
        "replace the file",
    ),
    "a CSV file with more columns than the others": (
        "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
        "file:///data/in/2.txt.  SQLSTATE: KD001\n"
        "Caused by: org.apache.spark.SparkIllegalArgumentException: Number of column in CSV header is not equal to "
        "number of fields in the schema:",
        "the header of /data/in/2.txt has a name twice or an empty one, or is not the header of the other files",
        "at step 'Lines",
        "give the files one header",
    ),
    "a name with a colon": (
        "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
        "file:///data/in/10:15.txt.  SQLSTATE: KD001\n"
        "Caused by: java.lang.IllegalArgumentException: java.net.URISyntaxException: Relative path in absolute URI: "
        ".10:15.txt.crc",
        "Spark cannot read /data/in/10:15.txt, because its name has a colon",
        "at step 'Lines",
        "rename the file",
    ),
    "a name with a colon among the files of a folder": (
        "java.lang.IllegalArgumentException: java.net.URISyntaxException: Relative path in absolute URI: 10:15.txt",
        "Spark cannot read 10:15.txt, because its name has a colon",
        STEP,
        "rename the file",
    ),
    "columns whose names differ in capital letters only": (
        "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
        "file:/data/numbers/a.parquet. SQLSTATE: KD001\nCaused by: java.lang.RuntimeException: "
        '[_LEGACY_ERROR_TEMP_2093] Found duplicate field(s) "a": [a, A] in case-insensitive mode',
        "one column, here a, A",
        STEP,
        "ReadFromParquet",
    ),
    "a Parquet file without an end": (
        "org.apache.spark.SparkException: [FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER] Encountered error while reading "
        "file file:/data/numbers/a.parquet. Could not read footer. Please ensure that the file is in either ORC or "
        "Parquet format.",
        "/data/numbers/a.parquet is damaged",
        "at step 'Numbers",
        "replace the file",
    ),
    "a file that is gone": (
        "org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
        "hdfs://name:9000/logs/1.txt. File does not exist. It is possible the underlying files have been updated.",
        "hdfs://name:9000/logs/1.txt was deleted or moved after the pipeline found it",
        STEP,
        "leave files where they are",
    ),
    "a file that may not be read": (
        "org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
        "file:///logs/1.txt. File does not exist. It is possible the underlying files have been updated.\n\tat a.b(C)\n"
        "Caused by: java.io.FileNotFoundException: /logs/1.txt (Permission denied)",
        "the workers have no permission to read /logs/1.txt",
        STEP,
        "give the user",
    ),
    "a file where a folder has to be": (
        "org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/data/out",
        "/data/out is a file, but must be a folder",
        STEP,
        "write to another path",
    ),
    "too little memory for Java": (
        "java.lang.OutOfMemoryError: Java heap space",
        "Java ran out of memory",
        STEP,
        "spark.driver.memory",
    ),
    "an executor that a cluster has killed": (
        "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Container killed by YARN "
        "for exceeding memory limits. 5.5 GB of 5.5 GB physical memory used.",
        "has killed an executor that used more memory than allowed",
        STEP,
        "more memory",
    ),
    "a line that is not as the schema says": (
        "org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are "
        "detected in record parsing: [secret 41]. Parse Mode: FAILFAST. SQLSTATE: 22023",
        "a line of the input does not match the schema",
        STEP,
        "PERMISSIVE",
    ),
    "something that is not in the table": (
        "org.apache.spark.SparkRuntimeException: [NEW_IN_ITS_NEXT_VERSION] It met a com.example.deep.Thing in "
        "org.apache.spark.sql.Row. SQLSTATE: XX000",
        "Spark failed: [NEW_IN_ITS_NEXT_VERSION] It met a Thing in Row.",
        STEP,
        "penstock_spark.spark to DEBUG",
    ),
}


@pytest.mark.parametrize("case", SAID)
@pytest.mark.parametrize("kind", [Py4JJavaErrorOfText, StreamingQueryException])
def test_what_spark_says_is_told_in_three_parts(case, kind, caplog):
    said, what, where, hint = SAID[case]
    caplog.set_level(logging.DEBUG, "penstock_spark")
    error = kind(TASK.format(said, said))
    told = translate(error, ErrorContext(Reporting(), graph(), (STEP,), CHECKPOINT))
    text = str(told)
    assert what in text.splitlines()[0]
    assert where in text.splitlines()[1]
    assert hint in text.splitlines()[2]
    assert len(text.splitlines()) == 3
    for word in ("py4j", "Py4J", "org.apache", "java.", "com.example", "secret"):
        assert word not in text
    assert len(text) < 1_000
    assert told.__cause__ is None
    assert "org.apache" in caplog.text


class Thrown:
    """An error of Java's, without Java."""

    def __init__(
        self, condition: str | None, parameters: dict[str, str], cause: Thrown | None = None
    ) -> None:
        self._condition, self._parameters, self._thrown = condition, parameters, cause

    def getCondition(self) -> str | None:
        if self._condition is None:
            raise Py4JError("Method getCondition([]) does not exist")
        return self._condition

    def getMessageParameters(self) -> dict[str, str]:
        return self._parameters

    def getCause(self) -> Thrown | None:
        return self._thrown


def of_java(text: str, thrown: Thrown) -> PySparkException:
    error = AnalysisException(text)
    error._origin = thrown
    return error


CONDITIONS_OF_SPARK = {
    "ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION": (
        {"message": "long overflow"},
        "an overflow: a number that Spark computes does not fit its type",
        "DECIMAL(38)",
    ),
    "CAST_INVALID_INPUT": (
        {"expression": "'secret 41'", "sourceType": '"STRING"', "targetType": '"INT"'},
        'Spark cannot cast a value of the type "STRING" to "INT"',
        "try_cast",
    ),
    "COLUMN_ALREADY_EXISTS": ({"columnName": "`a b`"}, "two columns have the name a b, and", "rename"),
    "DATA_SOURCE_NOT_FOUND": ({"provider": "parket"}, "Spark has no format parket", "packages"),
    "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION": (
        {"precision": "50", "maxPrecision": "38"},
        "a column has decimals of 50 digits, and Spark has at most 38",
        "ReadFromParquet",
    ),
    "DIVIDE_BY_ZERO": ({"config": "spark.sql.ansi.enabled"}, "Spark divides by zero", "NULLIF"),
    "INVALID_PARAMETER_VALUE.CHARSET": ({"charset": "nope"}, "does not know the encoding nope", "utf-8"),
    "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION": ({}, "an overflow: a number", "DECIMAL(38)"),
    "PATH_ALREADY_EXISTS": ({"outputPath": "file:/data/my out"}, "/data/my out already exists", "overwrite"),
    "PATH_NOT_FOUND": ({"path": "file:/data/in. here"}, "/data/in. here does not exist", "check the path"),
    "REMAINDER_BY_ZERO": ({}, "Spark divides by zero", "NULLIF"),
    "UNABLE_TO_INFER_SCHEMA": ({"format": "Parquet"}, "the files are empty", "write the files again"),
}


@pytest.mark.parametrize("name", CONDITIONS_OF_SPARK)
def test_a_condition_is_told_by_its_parameters(name: str) -> None:
    parameters, what, hint = CONDITIONS_OF_SPARK[name]
    around = Thrown(None, {}, Thrown(name, parameters, Thrown(None, {})))
    error = of_java(f"[{name}] Of the secret 41: No space left on device", around)
    lines = str(translate(error, ErrorContext(Reporting(), graph(), (STEP,), CHECKPOINT))).splitlines()
    assert what in lines[0]
    assert STEP in lines[1]
    assert hint in lines[2]
    assert "secret" not in "".join(lines)


def test_a_condition_is_found_below_the_error_of_a_query() -> None:
    error = StreamingQueryException("[STREAM_FAILED] Query [id = 1] terminated with exception")
    error._cause = of_java("[DIVIDE_BY_ZERO]", Thrown("DIVIDE_BY_ZERO", {}))
    assert str(translate(error)).startswith("Spark divides by zero")


def test_what_goes_wrong_in_a_file_names_the_file() -> None:
    said = (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:/data/in/a.csv. SQLSTATE: KD001"
    )
    cause = Thrown("CAST_INVALID_INPUT", {"sourceType": '"STRING"', "targetType": '"INT"'})
    error = of_java(said, Thrown("FAILED_READ_FILE.NO_HINT", {"path": "file:/data/in/a.csv"}, cause))
    assert str(translate(error)).startswith("/data/in/a.csv is damaged")


def test_an_error_of_a_query_is_told_by_the_stack_of_its_cause():
    """PySpark's text of it has no more than the name of the cause."""
    said, what, *_ = SAID["the process is gone that plans what a stream reads"]
    error = StreamingQueryException(
        "[STREAM_FAILED] Query [id = 1] terminated with exception:  SQLSTATE: XXKST"
    )
    error._stackTrace = (
        "org.apache.spark.sql.streaming.StreamingQueryException\n\tat StreamExecution.runStream"
    )
    error._cause = UnknownException("java.io.EOFException")
    error._cause._stackTrace = said
    assert str(translate(error)).startswith(what)


def test_a_value_that_spark_computes_names_the_steps_that_have_it_computed():
    for name in ("CAST_INVALID_INPUT", "ARITHMETIC_OVERFLOW", "DIVIDE_BY_ZERO"):
        thrown = Thrown(name, {"sourceType": "STRING", "targetType": "INT"})
        known = ErrorContext(Reporting(), graph(), (STEP,), computed=("at step 'Query' (game.py:7)",))
        told = str(translate(of_java(f"[{name}]", thrown), known))
        assert told.splitlines()[1] == "  at step 'Query' (game.py:7)"


GONE = (
    Py4JError("py4j.reflection does not exist in the JVM"),
    Py4JError("org.apache.spark.api.python.PythonUtils does not exist in the JVM"),
    Py4JError("An error occurred while calling o1.x. Trace:\nAnswer from Java side is empty"),
    Py4JNetworkError("Answer from Java side is empty"),
    Py4JNetworkError("An error occurred while trying to connect to the Java server (127.0.0.1:1)"),
    TypeError("'JavaPackage' object is not callable"),
)


@pytest.mark.parametrize("error", GONE, ids=str)
def test_a_java_that_is_gone_is_told_whatever_python_says_of_it(error):
    told = str(translate(error, ErrorContext(places=(STEP,))))
    assert told.startswith("Spark's Java process has died")
    assert "py4j" not in told


@pytest.mark.parametrize(
    "error", [TypeError("unsupported"), ConnectionRefusedError(111, "no"), ValueError("x"), EOFError()]
)
def test_errors_that_spark_did_not_raise_stay_as_they_are(error):
    assert translate(error) is error


def test_a_refused_connection_of_a_worker_is_not_taken_for_a_dead_java():
    said = "java.net.ConnectException: Connection refused: the broker"
    assert "Java process" not in str(translate(Py4JJavaErrorOfText(TASK.format(said, said))))


def test_an_error_of_an_analysis_keeps_what_spark_says_and_leaves_its_plan_out():
    error = AnalysisException(
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `b` cannot be resolved. Did you mean one of the following? [`a`]."
        " SQLSTATE: 42703;\n'Project ['b]\n+- LogicalRDD [a#1], false\n"
    )
    told = str(translate(error, ErrorContext(places=(STEP,))))
    assert "A column `b` cannot be resolved. Did you mean one of the following? [`a`]." in told
    assert "LogicalRDD" not in told


def test_steps_are_listed_where_a_job_has_several():
    places = tuple(f"at step '{name}' (game.py:{number})" for number, name in enumerate("ABCDE"))
    told = str(translate(Py4JJavaErrorOfText("strange"), ErrorContext(places=places)))
    assert "in a job of the steps 'A' (game.py:0), 'B' (game.py:1), 'C' (game.py:2) and 2 more" in told


def test_what_user_code_raised_comes_before_what_spark_says_around_it():
    reporting = Reporting()
    with reports_of(reporting):
        text = mark(KeyError("x"), STEP)
    error = StepFailure(TASK.format(text, "java.io.IOException: No space left on device"))
    assert type(translate(error, ErrorContext(reporting))) is KeyError
    spark = Py4JJavaErrorOfText(str(error))
    assert type(translate(spark, ErrorContext(reporting))) is KeyError
    assert "a disk is full" in str(translate(spark, ErrorContext(Reporting())))


def test_the_steps_that_a_worker_wrote_down_count_only_if_they_are_signed():
    reporting = Reporting()
    packed = "WyJhdCBzdGVwICdBJyJd"
    with reports_of(reporting):
        forged = f"01 penstock-steps<{'0' * 64}:{packed}>"
        assert find_worker_death(forged) is None
        died = find_worker_death(f"{forged}\n01 penstock-steps<{reporting.signature(packed)}:{packed}>\n")
        assert died is not None
        assert died.where == "at step 'A'"
        idle = find_worker_death(f"00 penstock-steps<{reporting.signature(packed)}:{packed}>\n")
        assert idle is not None
        assert (idle.where, idle.steps) == (None, ("at step 'A'",))


def test_every_line_of_the_table_has_a_hint_and_no_word_of_javas():
    for message in (*MESSAGES, *CONDITIONS.values()):
        assert message.what
        assert message.hint
        assert "org.apache" not in message.what + message.hint


def test_what_spark_says_of_a_file_is_not_taken_for_a_refusal_of_its_source() -> None:
    said = "java.net.URISyntaxException: Relative path in absolute URI: 10:15.txt"
    with (
        pytest.raises(PySparkException, match=said),
        translate_spark_errors("text /in/*.txt", "at step 'Read'"),
    ):
        raise PySparkException(said)


def test_a_hint_follows_the_condition_of_a_refusal_and_not_its_words() -> None:
    said = "[A_CLASS] The option 'PATH_NOT_FOUND' must be positive"
    hints = {"PATH_NOT_FOUND": "create the folder", "A_CLASS": "check the options"}
    for name, hint in hints.items():
        with pytest.raises(ValueError, match=hint), translate_spark_errors("spark rate", "at step 'Read'"):
            raise of_java(said, Thrown(name, {}))


_WORKER = (
    "PythonException: An exception was thrown from the Python worker:\n{}\n"
    "org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] "
    "An exception was thrown from the Python worker: {}\n"
    " SQLSTATE: 38000\n"
    "\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1097)\n"
)
_FIRST = (
    "Traceback (most recent call last):\n"
    '  File "<string>", line 3, in <module>\n'
    "ModuleNotFoundError: No module named 'tea_of_no_package'\n"
)
_LAST = (
    "Traceback (most recent call last):\n"
    '  File "/python/lib/pyspark.zip/pyspark/worker.py", line 4327, in invoke_udf\n'
    "    run_process()\n"
    '  File "stage.py", line 405, in run\n'
    "    loaded: StageProgram[WriterSpec] = loads(program)\n"
    "                                       ^^^^^^^^^^^^^^\n"
    '  File "<string>", line 5, in <module>\n'
    "RuntimeError: the model cannot be read"
)
_CHAINS = {
    "a cause": "\nThe above exception was the direct cause of the following exception:\n\n",
    "another error": "\nDuring handling of the above exception, another exception occurred:\n\n",
    "a cause with more lines": "and\n  more of it\n\n"
    "The above exception was the direct cause of the following exception:\n\n",
}


@pytest.mark.parametrize("chain", _CHAINS.values(), ids=_CHAINS)
def test_the_last_error_of_a_chain_is_the_one_that_a_worker_raised(chain) -> None:
    text = _FIRST + chain + _LAST
    found = translate(Py4JJavaErrorOfText(_WORKER.format(text, text)), ErrorContext(places=(STEP,)))
    assert str(found).startswith("a Python worker failed: RuntimeError: the model cannot be read\n")
    [note] = found.__notes__
    assert "tea_of_no_package" in note
    assert note.endswith("RuntimeError: the model cannot be read")
    assert "SQLSTATE" not in note


def test_an_error_without_a_chain_is_the_one_that_a_worker_raised() -> None:
    found = translate(Py4JJavaErrorOfText(_WORKER.format(_LAST, _FIRST)), ErrorContext(places=(STEP,)))
    assert str(found).startswith("a Python worker failed: RuntimeError: the model cannot be read\n")
