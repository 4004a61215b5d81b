"""Tables of Spark failures, by condition or by a pattern of the message: what has happened, and what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_NAME = r"(?P<{0}>[\w+.-]+:/[^\s\"']*?|/[^\s\"']*?)"
_FILE_END = r"(?=[.,;:]?(?:\s|$)|\.\s)"
_FILE = _NAME.format("file") + _FILE_END

_MEMORY = (
    "give the workers more memory, or run fewer tasks at a time, or make the step hold less data at once"
)
_DAMAGED = "replace the file with a complete one; if a program is still writing it, wait until it is done"
_CHECKPOINT = "restore the folder from a copy, or start again with another checkpoint_location"
_RIGHTS = "check the permissions of the folder, or name another folder"
_SESSION = "run the program again; with a checkpoint_location, a stream continues where it was"


_DEAD_PYTHON = f"find what ends the process on the driver's machine, such as too little memory; {_SESSION}"


@dataclass(frozen=True)
class Explanation:
    what: str  # What has happened, with groups of a pattern, or parameters of a condition, in braces.
    hint: str  # What to do.
    # The subject: a ``file`` that is read or written, a ``checkpoint``, the ``session``, a ``value`` that Spark
    # computes, or a ``step``.
    about: str = "step"


@dataclass(frozen=True)
class Message(Explanation):
    pattern: re.Pattern[str] = re.compile("")
    """Found in Spark's text. Its group ``file`` is the file that the text is about."""


def _line(pattern: str, what: str, hint: str, about: str = "step") -> Message:
    return Message(what, hint, about, re.compile(pattern, re.DOTALL))


def _cut_off(runner: str) -> str:
    """Returns the pattern of an error that a class of Spark raises when the process at its socket has died."""
    return rf"(?:EOFException|SocketException|Broken pipe|Connection reset)[^\n]*(?:\n\s+at [^\n]*)*?\.(?:{runner})\."


_CAST = Explanation(
    "Spark cannot cast a value of the type {sourceType} to {targetType}",
    "correct the value, or use try_cast in the query or the frame that the pipeline reads",
    "value",
)
_OVERFLOW = Explanation(
    "an overflow: a number that Spark computes does not fit its type",
    "in a query, cast to a wider type first, such as DECIMAL(38) or DOUBLE; for sums of integers, declare the "
    "values as Any, and Python adds them",
    "value",
)
_BY_ZERO = Explanation(
    "Spark divides by zero",
    "filter out such rows, or divide by NULLIF(divisor, 0), which returns NULL",
    "value",
)

# Spark's conditions that say everything: the others are found in the message. Data is not in errors.
CONDITIONS: Mapping[str, Explanation] = {
    "ARITHMETIC_OVERFLOW": _OVERFLOW,
    "CAST_INVALID_INPUT": _CAST,
    "CAST_OVERFLOW": _CAST,
    "CAST_OVERFLOW_IN_TABLE_INSERT": _CAST,
    "COLUMN_ALREADY_EXISTS": Explanation(
        "two columns have the name {columnName}, and Spark ignores the case of names",
        "rename one of them",
    ),
    "DATA_SOURCE_NOT_FOUND": Explanation(
        "Spark has no format {provider}",
        "correct the name, or give Spark the package of the format: --spark_conf=spark.jars.packages=...",
    ),
    "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION": Explanation(
        "a column has decimals of {precision} digits, and Spark has at most 38",
        "read Parquet files with ReadFromParquet, which reads all digits, or write the column with at most 38 digits",
    ),
    "DIVIDE_BY_ZERO": _BY_ZERO,
    "INVALID_PARAMETER_VALUE.CHARSET": Explanation(
        "Spark does not know the encoding {charset}",
        "use one that it knows: utf-8, iso-8859-1, us-ascii, utf-16, utf-16be, utf-16le or utf-32",
    ),
    "NUMERIC_VALUE_OUT_OF_RANGE": _OVERFLOW,
    "PATH_ALREADY_EXISTS": Explanation(
        "{outputPath} already exists",
        "write to another path, or choose the mode 'overwrite' or 'append'",
        "file",
    ),
    "PATH_NOT_FOUND": Explanation(
        "{path} does not exist",
        "check the path, and leave files where they are until the pipeline has read them",
        "file",
    ),
    "REMAINDER_BY_ZERO": _BY_ZERO,
    "UNABLE_TO_INFER_SCHEMA": Explanation(
        "the files are empty, so they have no schema",
        "write the files again, or give a pattern without them",
    ),
}
OF_A_FILE = "FAILED_READ_FILE"
"""The condition of a file that cannot be read; the text has the reason."""


def explanation_of(condition: str) -> Explanation | None:
    """Returns what the table has for a condition, or for the condition that it is a case of.

    >>> explanation_of("NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION").about, explanation_of("NEW")
    ('value', None)
    """
    return CONDITIONS.get(condition) or CONDITIONS.get(condition.partition(".")[0])


# The first match counts: causes come before the messages that Spark puts around them.
MISFIT = _line(
    r"FAILED_READ_FILE[^\n]*? file " + _FILE + r".{0,20000}?MALFORMED_(?:RECORD_IN_PARSING|CSV_RECORD)",
    "{file} has a record that does not fit the columns: a field is missing or too many, or is not of its type",
    "correct the file or the columns; with the option mode='PERMISSIVE', Spark truncates such records or fills them",
    "file",
)
"""A record that does not fit the columns, whose line may be found."""

MESSAGES = (
    _line(
        r"No space left on device|Disk quota exceeded|There is not enough space on the disk",
        "a disk is full",
        "free some space on the disks of the output, the checkpoint and Spark's temporary files (spark.local.dir, or "
        "SPARK_LOCAL_DIRS of a cluster's workers)",
    ),
    _line(
        # These messages come from Python, not from Java.
        r"\A(?:Py4JNetworkError|Connection\w*Error|BrokenPipeError|EOFError|TypeError"
        r"|Py4JError: .{0,400}?(?:does not exist in the JVM|Answer from Java side is empty))"
        r"|JAVA_GATEWAY_EXITED|Java gateway process exited",
        "Spark's Java process has died, or the driver cannot reach it",
        f"check its last messages, and the memory of the machine; {_SESSION}",
        "session",
    ),
    _line(
        r"SparkContext was shut down|[Ss]topped SparkContext|SparkContext has been shutdown"
        r"|Job \d+ cancelled because SparkContext|LiveListenerBus is stopped",
        "the Spark session was stopped while the pipeline ran",
        "keep the session until the run has ended: call wait_until_finish() before spark.stop()",
        "session",
    ),
    _line(
        r"OutOfMemoryError: (?P<kind>[^\n]*)|GC overhead limit exceeded",
        "Java ran out of memory",
        "give Java more memory: --spark_conf=spark.driver.memory=4g on one machine, spark.executor.memory on a cluster",
    ),
    _line(
        r"Total size of serialized results .{0,200}maxResultSize",
        "the driver received more than spark.driver.maxResultSize allows",
        "write the result to files, make the side inputs smaller, or raise spark.driver.maxResultSize",
    ),
    _line(
        r"ExecutorLostFailure .{0,300}?(?:Container killed|exceeding memory|OOM|exit code 137|code: 137)",
        "the cluster has killed an executor that used more memory than allowed",
        _MEMORY,
    ),
    _line(
        r"stage with indeterminate output was failed and retried",
        "Spark lost a machine, and cannot recompute the same data",
        f"{_SESSION}; use machines that the cluster does not take away",
    ),
    _line(
        r"(?:NoSuchFileException|FileNotFoundException): \S*/blockmgr-",
        "Spark's temporary files were deleted while the pipeline ran",
        f"keep cleaners away from spark.local.dir, which a cluster's workers name SPARK_LOCAL_DIRS; {_SESSION}",
    ),
    _line(
        r"ExecutorLostFailure|MetadataFetchFailedException|FetchFailed",
        "Spark lost an executor and its results more often than it retries",
        "check the log of that executor; often it has run out of memory",
    ),
    _line(
        r"Cannot run program \"(?P<program>[^\"]*)\"|PYTHON_VERSION_MISMATCH",
        "the workers cannot start their Python",
        "set PYSPARK_PYTHON to a Python of the driver's version that every machine has",
        "session",
    ),
    _line(
        r"Python worker failed to connect back|Timed out while waiting for the Python worker",
        "a Python worker did not start in time",
        "check whether the machine is overloaded, and whether something closes its connections",
    ),
    _line(
        r"Python worker exited unexpectedly|Python daemon .{0,40}exited|Failed to run Python",
        "a Python worker has died",
        "find what ends the process: too little memory, os._exit, a library that crashes; in your own session, "
        "set spark.python.worker.faulthandler.enabled to true to see the step",
    ),
    _line(
        _cut_off("PythonStreamingSourceRunner"),
        "the Python process in which Spark plans what a stream reads has died",
        _DEAD_PYTHON,
    ),
    _line(
        _cut_off("StreamingPythonRunner|\\w*PythonPreInitRunner"),
        "the Python process in which Spark reads the state of a stream has died",
        _DEAD_PYTHON,
    ),
    # Spark's own checkpoint, before messages that also fit other files.
    _line(
        r"Checksum error: (?P<file>\S*?/(?:offsets|commits|sources|state|metadata|control|inputs)\b\S*)",
        "the checkpoint is damaged: {file} has changed since Spark wrote it",
        _CHECKPOINT,
        "checkpoint",
    ),
    _line(
        r"[Ee]rror reading (?:streaming state|delta|snapshot) file (?:of )?(?P<file>\S*?/state/\S*?)(?=[.,:;]?\s)",
        "the checkpoint is damaged: Spark cannot read {file}",
        _CHECKPOINT,
        "checkpoint",
    ),
    _line(
        r"Incomplete log file|MALFORMED_LOG_FILE|malformed log file|CANNOT_LOAD_STATE_STORE|STDS_FAILED_TO_READ"
        r"|FAILED_TO_READ_(?:STREAMING|DELTA|SNAPSHOT)\w*|STATE_STORE_\w*(?:CORRUPT|CHECKSUM|NOT_EXIST)\w*"
        r"|RocksDBException: .{0,20}Corruption|[Ee]rror reading (?:streaming state|delta|snapshot) file"
        r"|MISSING_METADATA_FILE|OPERATOR_MISSING_STATE_DIRECTORY"
        r"|batch \d+ doesn't exist|Failed to read .{0,80}/(?:offsets|commits|state)/"
        r"|CheckpointFileChecksumVerification\w*|[Cc]hecksum verification failed|BATCH_METADATA_NOT_FOUND"
        r"|(?:ZipException|EOFException).{0,4000}?RocksDBFileManager",
        "the checkpoint is damaged: Spark cannot read its own files there",
        _CHECKPOINT,
        "checkpoint",
    ),
    _line(
        r"(?:Concurrent update to the log|CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming jobs detected)",
        "another query has written to the same checkpoint",
        "use a checkpoint_location for one run at a time",
        "checkpoint",
    ),
    # Files that are read.
    _line(
        r"No FileSystem for scheme \"(?P<scheme>[^\"]*)\"",
        "Spark has no file system for {scheme}://",
        "correct the path, or give Spark the package of the file system: --spark_conf=spark.jars.packages=...",
    ),
    _line(
        r"CSV header (?:does not conform to the schema|is not conforming).{0,2000}?CSV file: "
        + _FILE
        + r"|FAILED_READ_FILE[^\n]*? file "
        + _FILE.replace("file>", "file2>")
        + r".{0,20000}?CSV header (?:does|is) not",
        "the header of {file} has a name twice or an empty one, or is not the header of the other files",
        "give the files one header; names=[...] with header=0 replaces duplicate or empty names",
        "file",
    ),
    MISFIT,
    _line(
        r"FAILED_READ_FILE[^\n]*? file " + _FILE + r".{0,20000}?(?:Permission denied|AccessControlException)",
        "the workers have no permission to read {file}",
        "give the user that Spark runs as the permission to read the file",
        "file",
    ),
    _line(
        r"FAILED_READ_FILE\.FILE_NOT_EXIST[^\n]*? file "
        + _FILE
        + r"|FAILED_READ_FILE[^\n]*? file "
        + _FILE.replace("file>", "file2>")
        + r".{0,20000}?Caused by: java\.io\.FileNotFoundException",
        "{file} was deleted or moved after the pipeline found it",
        "leave files where they are until the pipeline has read them",
        "file",
    ),
    _line(
        r"FAILED_READ_FILE[^\n]*? file "
        + _FILE
        + r".{0,20000}?[Cc]lass \S*?(?P<codec>\w+)Codec was not found",
        "Spark cannot read {file}, because it lacks the compression codec {codec}",
        "write the file with snappy, gzip, zstd or lz4, or give Spark the jar of this codec",
        "file",
    ),
    _line(
        r"FAILED_READ_FILE\.PARQUET_COLUMN_DATA_TYPE_MISMATCH[^\n]*? file "
        + _FILE
        + r".{0,400}?column \[(?P<column>[^\n]+?)\]\. Expected Spark type (?P<wanted>[^\n]+?), "
        r"actual Parquet type (?P<given>\w+)",
        "the column {column} of {file} has the type {given}, and the pipeline reads it as {wanted}",
        "start the pipeline again, which finds a type for all files if there is one; otherwise write the file again "
        "with the type of the others",
        "file",
    ),
    _line(
        r"Found duplicate field\(s\) [^\n]{1,200}?: \[(?P<names>[^\n\]]{1,400})\] in case-insensitive mode",
        "Spark treats columns whose names differ only in case as one column, here {names}",
        "read the files with ReadFromParquet, which distinguishes them, or rename one of them",
    ),
    _line(
        r"FAILED_READ_FILE[^\n]*? file "
        + _FILE
        + r".{0,20000}?URISyntaxException|Relative path in absolute URI: (?P<file2>[^\n]+)",
        "Spark cannot read {file}, because its name has a colon",
        "rename the file",
        "file",
    ),
    _line(
        r"FAILED_READ_FILE\.(?:CANNOT_READ_FILE_FOOTER|PARQUET\w*)?[^\n]*? file " + _FILE,
        "{file} is damaged or incomplete",
        _DAMAGED,
        "file",
    ),
    _line(
        r"FileNotFoundException: "
        + _NAME.format("file")
        + r" \((?:Read-only file system|Permission denied)\)",
        "the user that Spark runs as has no permission to write or read {file}",
        _RIGHTS,
        "file",
    ),
    _line(
        r"(?:File does not exist|FileNotFoundException)\b.{0,40}?" + _FILE,
        "{file} does not exist",
        "check the path, and leave files where they are until the pipeline has read them",
        "file",
    ),
    # Folders that are written.
    _line(
        r"(?:Parent path is not a directory|ParentNotDirectoryException|Not a directory)\b.{0,120}?" + _FILE,
        "{file} is a file, but must be a folder",
        "write to another path, or move that file away",
        "file",
    ),
    _line(
        r"(?:FileAlreadyExistsException|is a directory|Is a directory)\b.{0,120}?" + _FILE,
        "{file} already exists, and the pipeline cannot replace it",
        "write to another path, or move it away",
        "file",
    ),
    _line(
        r"Mkdirs failed to create " + _FILE,
        "Spark cannot create the folder {file}",
        "check the permissions of its parent folder, and whether something else has that name",
        "file",
    ),
    _line(
        r"Read-only file system|Permission denied|AccessControlException|AccessDeniedException",
        "the user that Spark runs as lacks the permission to write or read a file or a folder",
        _RIGHTS,
    ),
    _line(
        r"MALFORMED_(?:RECORD_IN_PARSING|CSV_RECORD)|Malformed records are detected",
        "a line of the input does not match the schema",
        "correct the line or the schema, or use the mode PERMISSIVE",
    ),
)
