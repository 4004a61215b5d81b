"""Steps that find files by pattern and read whole files."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from penstock.coders import coders
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin, PCollection
from penstock.error import refusal
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import ReadModifyWriteRuntimeState, ReadModifyWriteStateSpec
from penstock.io.filesystem import BeamIOError, CompressionTypes, FileMetadata
from penstock.io.filesystems import FileSystems
from penstock.io.streaming.periodic_sequence import PeriodicImpulse
from penstock.transforms.elements.create import Create
from penstock.transforms.elements.pardo import Map, ParDo
from penstock.transforms.grouping.windowing import WindowInto
from penstock.utils.timestamp import MAX_TIMESTAMP, Duration, Timestamp
from penstock.windows.window_fn import FixedWindows

_LOGGER = logging.getLogger(__name__)


class EmptyMatchTreatment:
    """The meaning of a pattern that matches no file (Beam's name)."""

    ALLOW = "ALLOW"
    DISALLOW = "DISALLOW"
    ALLOW_IF_WILDCARD = "ALLOW_IF_WILDCARD"

    @staticmethod
    def allow_empty_match(pattern: str, setting: str) -> bool:
        """True if the pattern may match nothing; a ValueError for an unknown setting."""
        if setting == EmptyMatchTreatment.ALLOW:
            return True
        if setting == EmptyMatchTreatment.ALLOW_IF_WILDCARD:
            return "*" in pattern
        if setting == EmptyMatchTreatment.DISALLOW:
            return False
        what = f"{setting!r} is not an EmptyMatchTreatment"
        raise refusal(ValueError, what, hint="pass ALLOW, DISALLOW or ALLOW_IF_WILDCARD")


class _Match(DoFn):
    def __init__(self, treatment: str) -> None:
        self._treatment = treatment

    def process(self, element: str) -> list[FileMetadata]:
        found = FileSystems.match([element])[0].metadata_list
        if not found and not EmptyMatchTreatment.allow_empty_match(element, self._treatment):
            what = f"Empty match for pattern {element}. Disallowed."
            raise refusal(BeamIOError, what, hint="check the path, or pass EmptyMatchTreatment.ALLOW")
        return found


class MatchAll(PTransform[Any, Any]):
    """Emits the files that each pattern in a PCollection matches, as ``FileMetadata`` (Beam's ``MatchAll``).

    `empty_match_treatment` decides whether a pattern may match nothing; otherwise that is a ``BeamIOError``.
    """

    def __init__(self, empty_match_treatment: str = EmptyMatchTreatment.ALLOW) -> None:
        super().__init__()
        EmptyMatchTreatment.allow_empty_match("", empty_match_treatment)  # Refuses an unknown one.
        self._treatment = empty_match_treatment

    def expand(self, pcoll: PCollection[Any]) -> PCollection[FileMetadata]:
        result: PCollection[FileMetadata] = pcoll | "Match" >> ParDo(
            _Match(self._treatment)
        ).with_output_types(FileMetadata)
        return result


class MatchFiles(PTransform[Any, Any]):
    """Emits the files that a pattern matches, as ``FileMetadata`` (Beam's ``MatchFiles``).

    Wildcards are those of ``ReadFromText``; see `MatchAll` for `empty_match_treatment`.

    Example: ``pipeline | MatchFiles("/logs/*.txt") | ReadMatches()``.
    """

    def __init__(
        self, file_pattern: str, empty_match_treatment: str = EmptyMatchTreatment.ALLOW_IF_WILDCARD
    ) -> None:
        super().__init__()
        EmptyMatchTreatment.allow_empty_match("", empty_match_treatment)  # Refuses an unknown one.
        self._pattern = file_pattern
        self._treatment = empty_match_treatment

    def expand(self, pbegin: PBegin) -> PCollection[FileMetadata]:
        result: PCollection[FileMetadata] = (
            pbegin.pipeline | Create([self._pattern]) | MatchAll(self._treatment)
        )
        return result


@dataclass(frozen=True)
class ReadableFile:
    """A file to read (Beam's ``ReadableFile``).

    `compression` is a name of ``CompressionTypes``, or None to follow the file's name.
    """

    metadata: FileMetadata
    compression: str | None = None

    def open(self, mime_type: str = "text/plain", compression_type: str | None = None) -> BinaryIO:
        """Opens the file for reading bytes, through its compression."""
        compression = compression_type or self.compression or CompressionTypes.AUTO
        return FileSystems.open(self.metadata.path, mime_type, compression)

    def read(self, mime_type: str = "application/octet-stream") -> bytes:
        """Returns all of its bytes."""
        with self.open(mime_type) as file:
            return file.read()

    def read_utf8(self) -> str:
        """Returns all of its text; UnicodeDecodeError if it is not UTF-8."""
        return self.read().decode("utf-8")


class _ToReadableFile(DoFn):
    def __init__(self, compression: str | None, skip_directories: bool) -> None:
        self._compression = compression
        self._skip_directories = skip_directories

    def process(self, element: str | FileMetadata) -> Iterator[ReadableFile]:
        metadata = FileMetadata(element, 0) if isinstance(element, str) else element
        if not metadata.path.endswith(("/", "\\")):
            yield ReadableFile(metadata, self._compression)
        elif not self._skip_directories:
            raise BeamIOError(f"Directories are not allowed in ReadMatches transform. Found {metadata.path}.")


class ReadMatches(PTransform[Any, Any]):
    """Makes a `ReadableFile` from each ``FileMetadata`` or path (Beam's ``ReadMatches``).

    Args:
        compression: A name of ``CompressionTypes``, or None to follow each file's name.
        skip_directories: Whether to skip a path that ends in a slash; otherwise it is a ``BeamIOError``.

    Example: ``files | ReadMatches() | Map(lambda file: file.read_utf8())``.
    """

    def __init__(self, compression: str | None = None, skip_directories: bool = True) -> None:
        super().__init__()
        self._dofn = _ToReadableFile(compression, skip_directories)

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        return pcoll | "ToReadableFile" >> ParDo(self._dofn).with_output_types(ReadableFile)


class MatchContinuously(PTransform[Any, Any]):
    """Emits the files that a pattern matches, at regular intervals (Beam's ``MatchContinuously``).

    Args:
        file_pattern: Wildcards as in ``ReadFromText``.
        interval: Seconds from one match to the next.
        has_deduplication: Whether to emit each file only once.
        start_timestamp: The time of the first match; None is now.
        stop_timestamp: When to stop.
        match_updated_files: Whether to emit a changed file again.
        apply_windowing: Whether the output is in fixed windows of `interval`.
        empty_match_treatment: See `MatchAll`.
        timestamp_cursor: Whether to remember only the latest time of a change, and the files that have it. Files that
            changed earlier then count as seen, even if they appear later. Changed files are emitted again. The files
            have the time of the match, as without the argument; in Beam they have the time of their change.

    >>> MatchContinuously("/logs/*", 60, match_updated_files=True, timestamp_cursor=True).match_upd
    True
    """

    def __init__(
        self,
        file_pattern: str,
        interval: float = 360.0,
        has_deduplication: bool = True,
        start_timestamp: Any = None,
        stop_timestamp: Any = MAX_TIMESTAMP,
        match_updated_files: bool = False,
        apply_windowing: bool = False,
        empty_match_treatment: str = EmptyMatchTreatment.ALLOW,
        timestamp_cursor: bool = False,
    ) -> None:
        super().__init__()
        EmptyMatchTreatment.allow_empty_match("", empty_match_treatment)  # Refuses an unknown one.
        if Duration.of(interval).micros <= 0:
            raise refusal(ValueError, "MatchContinuously interval must be positive.", hint="pass seconds")
        if timestamp_cursor and not has_deduplication:
            what = (
                "MatchContinuously(timestamp_cursor=True) deduplicates, and so needs has_deduplication=True"
            )
            raise refusal(ValueError, what, hint="leave out one of the two")
        if timestamp_cursor and not match_updated_files:
            _LOGGER.warning(
                "MatchContinuously(timestamp_cursor=True) also emits files again that have changed"
            )
        self.match_upd = match_updated_files or timestamp_cursor
        self.timestamp_cursor = timestamp_cursor
        self._pattern = file_pattern
        self._interval = interval
        self._has_deduplication = has_deduplication
        self._times = start_timestamp, stop_timestamp
        self._apply_windowing = apply_windowing
        self._treatment = empty_match_treatment

    def expand(self, pbegin: PBegin) -> PCollection[FileMetadata]:
        start, stop = self._times
        ticks = pbegin | PeriodicImpulse(Timestamp.now() if start is None else start, stop, self._interval)
        patterns: PCollection[Any] = ticks | "Pattern" >> Map(_second, self._pattern)
        if self.timestamp_cursor:
            looks = patterns | "Look" >> ParDo(_Look(self._treatment))
            files = looks | "PastTheCursor" >> ParDo(_PastTheCursor()).with_output_types(FileMetadata)
        else:
            files = patterns | MatchAll(self._treatment)
        if self._has_deduplication and not self.timestamp_cursor:
            keyed = files | "ByPath" >> Map(_with_path)
            files = keyed | "Deduplicate" >> ParDo(_OnlyNew(self.match_upd))
        result: PCollection[FileMetadata] = (
            files | WindowInto(FixedWindows(self._interval)) if self._apply_windowing else files
        )
        return result


def divide_arguments(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divides the arguments of a transform that also reads the files: first what `MatchContinuously` takes.

    >>> divide_arguments({"interval": 60, "with_filename": True})
    ({'interval': 60}, {'with_filename': True})
    """
    known = inspect.signature(MatchContinuously.__init__).parameters
    matching = {name: value for name, value in arguments.items() if name in known}
    return matching, {name: value for name, value in arguments.items() if name not in known}


class _Look(_Match):
    """All files of a pattern as one element, because they existed at one time."""

    def process(self, element: str) -> Any:
        found = super().process(element)
        for each in found:
            if not each.last_updated_in_seconds:
                raise BeamIOError(
                    f"timestamp_cursor needs the time of the last change, which is unknown for {each.path}"
                )
        return [(element, [(each.last_updated_in_seconds, each) for each in found])]


class _PastTheCursor(DoFn):
    """Gives the files that changed after the latest change seen so far, or at that time."""

    CURSOR = ReadModifyWriteStateSpec("cursor", coders.FastPrimitivesCoder())

    def process(
        self,
        element: tuple[str, list[tuple[float, FileMetadata]]],
        state: ReadModifyWriteRuntimeState = DoFn.StateParam(CURSOR),
    ) -> Iterator[FileMetadata]:
        """Yields the new ones of all that is there, in the order of their changes."""
        cursor, seen = state.read() or (0.0, set())
        new = [
            (changed, file)
            for changed, file in element[1]
            if changed > cursor or (changed == cursor and file.path not in seen)
        ]
        if new:
            latest = max(changed for changed, _ in new)
            paths = {file.path for changed, file in new if changed == latest}
            state.write((latest, paths | seen if latest == cursor else paths))
        yield from (file for _, file in sorted(new, key=lambda each: each[0]))


def _second(_: object, value: object) -> object:
    return value


def _with_path(metadata: FileMetadata) -> tuple[str, FileMetadata]:
    return metadata.path, metadata


class _OnlyNew(DoFn):
    """Gives a file once, or once for each change."""

    SEEN = ReadModifyWriteStateSpec("last_updated", coders.FloatCoder())

    def __init__(self, match_updated_files: bool) -> None:
        self._match_updated_files = match_updated_files

    def process(
        self, element: tuple[str, FileMetadata], seen: ReadModifyWriteRuntimeState = DoFn.StateParam(SEEN)
    ) -> Iterator[FileMetadata]:
        _, metadata = element
        before = seen.read()
        if before is None or (self._match_updated_files and metadata.last_updated_in_seconds > before):
            seen.write(metadata.last_updated_in_seconds)
            yield metadata
