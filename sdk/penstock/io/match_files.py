"""Finding files by pattern, and reading whole files, as steps of a pipeline."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from penstock.coders import coders
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.error import three_parts
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import ReadModifyWriteStateSpec
from penstock.io import filesystem
from penstock.io.filesystem import BeamIOError, CompressionTypes, FileMetadata
from penstock.io.filesystems import FileSystems
from penstock.transforms.create import Create
from penstock.transforms.pardo import Map, ParDo
from penstock.transforms.windowing import WindowInto
from penstock.utils.timestamp import MAX_TIMESTAMP, Duration, Timestamp
from penstock.windows.window_fn import FixedWindows

_LOGGER = logging.getLogger(__name__)


class EmptyMatchTreatment:
    """What a pattern that matches no file means (Beam's name).

    >>> EmptyMatchTreatment.allow_empty_match("/logs/*", EmptyMatchTreatment.ALLOW_IF_WILDCARD)
    True
    """

    ALLOW = "ALLOW"
    DISALLOW = "DISALLOW"
    ALLOW_IF_WILDCARD = "ALLOW_IF_WILDCARD"

    @staticmethod
    def allow_empty_match(pattern: str, setting: str) -> bool:
        """Whether it may be; ValueError if the setting is none of these, as in Beam for a pattern without
        ``*`` too.
        """
        if setting == EmptyMatchTreatment.ALLOW:
            return True
        if setting == EmptyMatchTreatment.ALLOW_IF_WILDCARD:
            return "*" in pattern
        if setting == EmptyMatchTreatment.DISALLOW:
            return False
        raise ValueError(
            three_parts(
                f"{setting!r} is no EmptyMatchTreatment", hint="take ALLOW, DISALLOW or ALLOW_IF_WILDCARD"
            )
        )


class _Match(DoFn):
    def __init__(self, treatment: str) -> None:
        self._treatment = treatment

    def process(self, element: str) -> list[filesystem.FileMetadata]:
        found = FileSystems.match([element])[0].metadata_list
        if not found and not EmptyMatchTreatment.allow_empty_match(element, self._treatment):
            raise BeamIOError(f"Empty match for pattern {element}. Disallowed.")
        return found


class MatchAll(PTransform[Any, Any]):
    """The files that each pattern in a PCollection matches, as ``FileMetadata`` (Beam's ``MatchAll``).

    Args:
        empty_match_treatment: What a pattern that matches nothing means; an error is a ``BeamIOError``.
    """

    def __init__(self, empty_match_treatment: str = EmptyMatchTreatment.ALLOW) -> None:
        super().__init__()
        self._treatment = empty_match_treatment

    def expand(self, pcoll: Any) -> PCollection[FileMetadata]:
        """One ParDo."""
        result: PCollection[FileMetadata] = pcoll | "Match" >> ParDo(
            _Match(self._treatment)
        ).with_output_types(filesystem.FileMetadata)
        return result


class MatchFiles(PTransform[Any, Any]):
    """The files that a pattern matches, as ``FileMetadata`` (Beam's ``MatchFiles``).

    Args:
        file_pattern: Wildcards as in ``ReadFromText``.
        empty_match_treatment: What it means if nothing matches; an error is a ``BeamIOError``.
    """

    def __init__(
        self, file_pattern: str, empty_match_treatment: str = EmptyMatchTreatment.ALLOW_IF_WILDCARD
    ) -> None:
        super().__init__()
        self._pattern = file_pattern
        self._treatment = empty_match_treatment

    def expand(self, pbegin: Any) -> PCollection[FileMetadata]:
        """The pattern, matched."""
        result: PCollection[FileMetadata] = (
            pbegin.pipeline | Create([self._pattern]) | MatchAll(self._treatment)
        )
        return result


@dataclass(frozen=True)
class ReadableFile:
    """A file that can be read (Beam's ``ReadableFile``).

    Args:
        metadata: What is known of the file.
        compression: A name of ``CompressionTypes``, or None for what the file's name says.
    """

    metadata: filesystem.FileMetadata
    compression: str | None = None

    def open(self, mime_type: str = "text/plain", compression_type: str | None = None) -> BinaryIO:
        """The file, open for reading bytes, through its compression."""
        compression = compression_type or self.compression or CompressionTypes.AUTO
        return FileSystems.open(self.metadata.path, mime_type, compression)

    def read(self, mime_type: str = "application/octet-stream") -> bytes:
        """All of its bytes."""
        with self.open(mime_type) as file:
            return file.read()

    def read_utf8(self) -> str:
        """All of its text; UnicodeDecodeError if it is not UTF-8."""
        return self.read().decode("utf-8")


class _ToReadableFile(DoFn):
    def __init__(self, compression: str | None, skip_directories: bool) -> None:
        self._compression = compression
        self._skip_directories = skip_directories

    def process(self, element: str | filesystem.FileMetadata) -> Iterator[ReadableFile]:
        metadata = filesystem.FileMetadata(element, 0) if isinstance(element, str) else element
        if not metadata.path.endswith(("/", "\\")):
            yield ReadableFile(metadata, self._compression)
        elif not self._skip_directories:
            raise BeamIOError(f"Directories are not allowed in ReadMatches transform. Found {metadata.path}.")


class ReadMatches(PTransform[Any, Any]):
    """Makes a `ReadableFile` of each ``FileMetadata`` or path (Beam's ``ReadMatches``).

    Args:
        compression: A name of ``CompressionTypes``, or None for what each file's name says.
        skip_directories: Whether a path that ends in a slash is left out; otherwise it is a ``BeamIOError``.
    """

    def __init__(self, compression: str | None = None, skip_directories: bool = True) -> None:
        super().__init__()
        self._dofn = _ToReadableFile(compression, skip_directories)

    def expand(self, pcoll: Any) -> Any:
        """One ParDo."""
        return pcoll | "ToReadableFile" >> ParDo(self._dofn).with_output_types(ReadableFile)


class MatchContinuously(PTransform[Any, Any]):
    """The files that a pattern matches, looked for again and again (Beam's ``MatchContinuously``).

    Args:
        file_pattern: Wildcards as in ``ReadFromText``.
        interval: Seconds from one look to the next.
        has_deduplication: Whether a file is given once only.
        start_timestamp: When to look first; None is now.
        stop_timestamp: When to stop.
        match_updated_files: Whether a file that was changed is given again.
        apply_windowing: Whether the output is in fixed windows of `interval`.
        empty_match_treatment: What it means if nothing matches.
        timestamp_cursor: Whether only the latest time of a change is remembered, and which files have it.
            Files that changed earlier are taken as seen, also those that come later. Changed ones are given again.

    Raises:
        ValueError: The interval is not positive, or `timestamp_cursor` is asked for without deduplication.

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
        if Duration.of(interval).micros <= 0:
            raise ValueError(three_parts("MatchContinuously interval must be positive.", hint="give seconds"))
        if timestamp_cursor and not has_deduplication:
            raise ValueError(
                three_parts(
                    "MatchContinuously(timestamp_cursor=True) deduplicates, and so needs has_deduplication=True",
                    hint="leave out one of the two",
                )
            )
        if timestamp_cursor and not match_updated_files:
            _LOGGER.warning(
                "MatchContinuously(timestamp_cursor=True) also gives files again that have changed"
            )
        self.match_upd = match_updated_files or timestamp_cursor
        self.timestamp_cursor = timestamp_cursor
        self._pattern = file_pattern
        self._interval = interval
        self._has_deduplication = has_deduplication
        self._times = start_timestamp, stop_timestamp
        self._apply_windowing = apply_windowing
        self._treatment = empty_match_treatment

    def expand(self, pbegin: Any) -> PCollection[FileMetadata]:
        """A clock, the pattern matched at each tick, files that were seen left out."""
        # The impulse reads a source, and whoever imports its module first would get here before it is there.
        from penstock.transforms.periodicsequence import PeriodicImpulse

        start, stop = self._times
        ticks = pbegin | PeriodicImpulse(Timestamp.now() if start is None else start, stop, self._interval)
        patterns = ticks | "Pattern" >> Map(_second, self._pattern)
        if self.timestamp_cursor:
            looks = patterns | "Look" >> ParDo(_Look(self._treatment))
            files = looks | "PastTheCursor" >> ParDo(_past_the_cursor()).with_output_types(FileMetadata)
        else:
            files = patterns | MatchAll(self._treatment)
        if self._has_deduplication and not self.timestamp_cursor:
            keyed = files | "ByPath" >> Map(_with_path)
            files = keyed | "Deduplicate" >> ParDo(_only_new(self.match_upd))
        result: PCollection[FileMetadata] = (
            files | WindowInto(FixedWindows(self._interval)) if self._apply_windowing else files
        )
        return result


class _Look(_Match):
    """All files of a pattern as one element, since they were there at one time."""

    def process(self, element: str) -> Any:
        found = super().process(element)
        for each in found:
            if not each.last_updated_in_seconds:
                raise BeamIOError(
                    f"timestamp_cursor needs the time of the last change, which is not known of {each.path}"
                )
        return [(element, [(each.last_updated_in_seconds, each) for each in found])]


def _past_the_cursor() -> DoFn:
    """A stateful DoFn that gives files which have changed since the latest change that was seen, or just then."""
    cursor_spec = ReadModifyWriteStateSpec("cursor", coders.FastPrimitivesCoder())

    class PastTheCursor(DoFn):
        def process(
            self,
            element: tuple[str, list[tuple[float, filesystem.FileMetadata]]],
            state: Any = DoFn.StateParam(cursor_spec),
        ) -> Iterator[filesystem.FileMetadata]:
            """The new ones of all that is there, in the order of their changes."""
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

    return PastTheCursor()


def _second(_: Any, value: Any) -> Any:
    return value


def _with_path(metadata: filesystem.FileMetadata) -> tuple[str, filesystem.FileMetadata]:
    return metadata.path, metadata


def _only_new(match_updated_files: bool) -> DoFn:
    """A stateful DoFn that gives a file once, or once for each time that it was changed."""
    seen_spec = ReadModifyWriteStateSpec("last_updated", coders.FloatCoder())

    class OnlyNew(DoFn):
        def process(
            self, element: tuple[str, filesystem.FileMetadata], seen: Any = DoFn.StateParam(seen_spec)
        ) -> Iterator[filesystem.FileMetadata]:
            """Handles one element."""
            _, metadata = element
            before = seen.read()
            if before is None or (match_updated_files and metadata.last_updated_in_seconds > before):
                seen.write(metadata.last_updated_in_seconds)
                yield metadata

    return OnlyNew()
