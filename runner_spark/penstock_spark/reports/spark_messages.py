"""What Spark says when something fails, as a table: a pattern of its text, what has happened, and what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = r"(?P<{0}>[\w+.-]+:/[^\s\"']*?|/[^\s\"']*?)"
_FILE_END = r"(?=[.,;:]?(?:\s|$)|\.\s)"
_FILE = _NAME.format("file") + _FILE_END

_MEMORY = "give the workers more memory or fewer tasks at a time, or let the step hold less at once"
_DAMAGED = "replace the file with a whole one; if it was being written, read it when that is done"
_CHECKPOINT = "restore the folder from a copy, or begin anew with another checkpoint_location"
_RIGHTS = "check the rights of the folder, or name another"
_SESSION = "run the program again, with a session that lasts; with a checkpoint_location, a stream goes on where it was"


@dataclass(frozen=True)
class Message:
    """A line of the table.

    Attributes:
        pattern: Found in Spark's text. Its group ``file`` is the file that the text is about.
        what: What has happened, with the pattern's groups in braces.
        hint: What to do.
        about: What it is about: a ``file`` that is read or written, a ``checkpoint``, the ``session``, or a ``step``.
    """

    pattern: re.Pattern[str]
    what: str
    hint: str
    about: str = "step"


def _line(pattern: str, what: str, hint: str, about: str = "step") -> Message:
    return Message(re.compile(pattern, re.DOTALL), what, hint, about)


# The first that is found counts: causes come before what Spark says around them.
MESSAGES = (
    _line(
        r"No space left on device|Disk quota exceeded|There is not enough space on the disk",
        "a disk is full",
        "make room where the output, the checkpoint and Spark's temporary files (spark.local.dir) are",
    ),
    _line(
        # Here Python speaks, and not Java.
        r"\A(?:Py4JNetworkError|Connection\w*Error|BrokenPipeError|EOFError|TypeError"
        r"|Py4JError: .{0,400}?(?:does not exist in the JVM|Answer from Java side is empty))"
        r"|JAVA_GATEWAY_EXITED|Java gateway process exited",
        "Spark's Java process has died, or cannot be reached",
        f"look at what it printed last, and at the memory of the machine; {_SESSION}",
        "session",
    ),
    _line(
        r"SparkContext was shut down|[Ss]topped SparkContext|SparkContext has been shutdown"
        r"|Job \d+ cancelled because SparkContext|LiveListenerBus is stopped",
        "the Spark session was stopped while the pipeline ran",
        "let the session go on until the run has ended: wait_until_finish() before spark.stop()",
        "session",
    ),
    _line(
        r"OutOfMemoryError: (?P<kind>[^\n]*)|GC overhead limit exceeded",
        "Java's memory was not enough",
        "give it more: --spark_conf=spark.driver.memory=4g on one machine, spark.executor.memory on a cluster",
    ),
    _line(
        r"Total size of serialized results .{0,200}maxResultSize",
        "more came to the driver than spark.driver.maxResultSize allows",
        "write the result to files; or let side inputs hold less; or raise spark.driver.maxResultSize",
    ),
    _line(
        r"ExecutorLostFailure .{0,300}?(?:Container killed|exceeding memory|OOM|exit code 137|code: 137)",
        "a machine's manager has killed an executor that took more memory than it may",
        _MEMORY,
    ),
    _line(
        r"ExecutorLostFailure|MetadataFetchFailedException|FetchFailed",
        "an executor was lost, and with it what it had computed, more often than Spark tries again",
        "look at the log of that executor; often its memory was not enough",
    ),
    _line(
        r"Cannot run program \"(?P<program>[^\"]*)\"|PYTHON_VERSION_MISMATCH",
        "the workers' Python cannot be started",
        "set PYSPARK_PYTHON to a Python that each machine has, of the driver's version",
        "session",
    ),
    _line(
        r"Python worker failed to connect back|Timed out while waiting for the Python worker",
        "a Python worker did not start in time",
        "look whether the machine is overloaded, and whether something closes its connections",
    ),
    _line(
        r"Python worker exited unexpectedly|Python daemon .{0,40}exited|Failed to run Python",
        "a Python worker has died",
        "look for what ends a process: too little memory, os._exit, a library that crashes; a session of your own tells"
        " the step if spark.python.worker.faulthandler.enabled is true",
    ),
    # A checkpoint of Spark's, before what its files have in common with others.
    _line(
        r"Checksum error: (?P<file>\S*?/(?:offsets|commits|sources|state|metadata|control|inputs)\b\S*)",
        "the checkpoint is damaged: {file} is not what was written",
        _CHECKPOINT,
        "checkpoint",
    ),
    _line(
        r"Incomplete log file|MALFORMED_LOG_FILE|malformed log file|CANNOT_LOAD_STATE_STORE|STDS_FAILED_TO_READ"
        r"|FAILED_TO_READ_(?:STREAMING|DELTA|SNAPSHOT)\w*|STATE_STORE_\w*(?:CORRUPT|CHECKSUM|NOT_EXIST)\w*"
        r"|RocksDBException: .{0,20}Corruption|[Ee]rror reading (?:streaming state|delta|snapshot) file"
        r"|MISSING_METADATA_FILE|batch \d+ doesn't exist|Failed to read .{0,80}/(?:offsets|commits|state)/"
        r"|CheckpointFileChecksumVerification\w*|[Cc]hecksum verification failed|BATCH_METADATA_NOT_FOUND"
        r"|(?:ZipException|EOFException).{0,4000}?RocksDBFileManager",
        "the checkpoint is damaged: Spark cannot read what it has written there",
        _CHECKPOINT,
        "checkpoint",
    ),
    _line(
        r"(?:Concurrent update to the log|CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming jobs detected)",
        "another query has written to the same checkpoint",
        "let one run at a time use a checkpoint_location",
        "checkpoint",
    ),
    # Files that are read.
    _line(
        r"FAILED_READ_FILE\.FILE_NOT_EXIST[^\n]*? file "
        + _FILE
        + r"|FAILED_READ_FILE[^\n]*? file "
        + _FILE.replace("file>", "file2>")
        + r".{0,20000}?Caused by: java\.io\.FileNotFoundException",
        "{file} is gone since the pipeline has found it",
        "files stay where they are until all is read",
        "file",
    ),
    _line(
        r"FAILED_READ_FILE[^\n]*? file " + _FILE + r".{0,20000}?(?:Permission denied|AccessControlException)",
        "{file} may not be read by the workers",
        "give the user whom Spark runs as the right to read it",
        "file",
    ),
    _line(
        r"FAILED_READ_FILE[^\n]*? file "
        + _FILE
        + r".{0,20000}?[Cc]lass \S*?(?P<codec>\w+)Codec was not found",
        "Spark cannot read {file}, since it has nothing that reads the compression {codec}",
        "write the file with snappy, gzip, zstd or lz4, or give Spark the jar of this codec",
        "file",
    ),
    _line(
        r"FAILED_READ_FILE\.(?:CANNOT_READ_FILE_FOOTER|PARQUET\w*)?[^\n]*? file " + _FILE,
        "{file} is damaged, or only a part of the file is there",
        _DAMAGED,
        "file",
    ),
    _line(
        r"FileNotFoundException: "
        + _NAME.format("file")
        + r" \((?:Read-only file system|Permission denied)\)",
        "{file} may not be written, or not be read, by the user whom Spark runs as",
        _RIGHTS,
        "file",
    ),
    _line(
        r"(?:File does not exist|FileNotFoundException|PATH_NOT_FOUND)\b.{0,40}?" + _FILE,
        "{file} is not there",
        "check the path; files stay where they are until all is read",
        "file",
    ),
    # Folders that are written.
    _line(
        r"(?:Parent path is not a directory|ParentNotDirectoryException|Not a directory)\b.{0,120}?" + _FILE,
        "{file} is a file, where a folder has to be",
        "write to another path, or move that file away",
        "file",
    ),
    _line(
        r"(?:FileAlreadyExistsException|is a directory|Is a directory)\b.{0,120}?" + _FILE,
        "{file} is there already, as something else than what is written",
        "write to another path, or move away what is there",
        "file",
    ),
    _line(
        r"Mkdirs failed to create " + _FILE,
        "the folder {file} cannot be made",
        "look whether it may be written, and whether something with that name is in the way",
        "file",
    ),
    _line(
        r"Read-only file system|Permission denied|AccessControlException|AccessDeniedException",
        "something may not be written, or not be read, by the user whom Spark runs as",
        _RIGHTS,
    ),
    # Data, which errors do not show.
    _line(
        r"\[(?:CAST_INVALID_INPUT|CAST_OVERFLOW)[\w.]*\].{0,20000}? of the type (?P<given>\"[^\"\n]{1,80}\")"
        r".{0,40}? cast to (?P<wanted>\"[^\"\n]{1,80}\")",
        "a value of the type {given} cannot be cast to {wanted}",
        "correct the value, or use try_cast in the query or the frame that the pipeline reads",
    ),
    _line(
        r"MALFORMED_(?:RECORD_IN_PARSING|CSV_RECORD)|Malformed records are detected",
        "a line of the input is not as the schema says",
        "correct the line or the schema, or use the mode PERMISSIVE",
    ),
)
