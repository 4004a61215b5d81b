"""Files on object stores, through the packages of fsspec: S3, Google Cloud Storage and Azure."""

from __future__ import annotations

import datetime
import errno
import importlib
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, cast

from penstock.error import refusal, three_parts
from penstock.io.files.compression import CompressionTypes, open_compressed, resolve_compression
from penstock.io.filesystem import BeamIOError, FileMetadata, FileSystem, for_each

__all__ = [
    "STORES",
    "ObjectStore",
    "Store",
    "check_store_url",
    "is_translated",
    "with_step",
    "settings_of_stores",
    "store_of",
    "translate_errors",
    "upload",
]


class Store(NamedTuple):
    """Names the packages that reach the stores of a scheme.

    Attributes:
        package: The package to import.
        extra: The extra of penstock that installs it.
        credentials: Where the package looks for credentials.
    """

    package: str
    extra: str
    credentials: str


_S3 = Store("s3fs", "s3", "AWS_ACCESS_KEY_ID, ~/.aws or the machine's role")
_GCS = Store("gcsfs", "gcs", "GOOGLE_APPLICATION_CREDENTIALS, gcloud or the machine's account")
_AZURE = Store("adlfs", "azure", "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY or AZURE_CLIENT_ID")

STORES = {
    "s3": _S3,
    "s3a": _S3,
    "gs": _GCS,
    "gcs": _GCS,
    "abfs": _AZURE,
    "abfss": _AZURE,
    "az": _AZURE,
}
"""The stores, by the schemes of their URLs."""

_VARIABLES = ("AWS_", "FSSPEC_", "GOOGLE_", "GCSFS_", "AZURE_", "STORAGE_EMULATOR_HOST")
"""Prefixes of the variables that the packages of stores read."""

_BLOCK_BYTES = 8 << 20
_CHANGED = ("LastModified", "last_modified", "updated", "mtime", "created")
_MARKS = ("ETag", "etag", "md5Hash")

_settings_of: dict[Any, dict[str, str]] = {}
"""The settings with which the clients of a package were made."""


def store_of(path: str) -> Store | None:
    """Returns the store of a URL; None for any other path.

    >>> store_of("s3://bucket/a").package, store_of("/a"), store_of("hdfs://host/a")
    ('s3fs', None, None)
    """
    scheme, found, _ = path.partition("://")
    return STORES.get(scheme.lower()) if found else None


def check_store_url(path: str, where: str | None = None) -> None:
    """Refuses a URL of a store whose package is not installed, or one that has credentials in it.

    Raises:
        ModuleNotFoundError: The package is missing.
        ValueError: The URL has a password in it.
    """
    store = store_of(path)
    if store is None:
        return
    scheme, _, rest = path.partition("://")
    user = rest.partition("/")[0].rpartition("@")[0]
    if ":" in user or (user and store is _S3):
        hint = f"remove them, and pass them by {store.credentials}"
        raise refusal(ValueError, f"a URL with {scheme}:// has credentials in it", where=where, hint=hint)
    try:
        for name in ("fsspec", store.package):
            importlib.import_module(name)
    except ModuleNotFoundError:
        what = f"files with {scheme}:// need the package {store.package}, which is not installed"
        hint = f"pip install 'penstock[{store.extra}]', or give Spark a file system of Hadoop's for {scheme}"
        raise refusal(ModuleNotFoundError, what, where=where, hint=hint) from None


@contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Converts errors of a store's package to an OSError with a hint, and without secrets.

    The messages of such packages may quote requests with their signatures, and so they are left out.
    """
    try:
        yield
    except (BeamIOError, ModuleNotFoundError):
        raise
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
    except Exception as error:
        if isinstance(error, OSError) and is_translated(error):
            raise
        store = store_of(path)
        kind = type(error).__name__
        sources = "" if store is None else f": {store.credentials}"
        if isinstance(error, PermissionError) or "Credential" in kind or "Auth" in kind:
            text = three_parts(
                f"the store refuses access to {path}",
                hint=f"check the credentials in the environment or in fsspec's configuration{sources}",
            )
            raise _marked(PermissionError(errno.EACCES, text)) from None
        text = three_parts(
            f"the store of {path} does not answer, or does not do what it was asked ({kind})",
            hint="check the network, the address of the store, and that the bucket exists",
        )
        raise _marked(OSError(errno.EIO, text)) from None


def with_step(error: OSError, where: str, before: str = "") -> OSError:
    """Returns an error with the step that it belongs to, and with words before what is wrong."""
    clause, _, rest = str(error.strerror or error).partition("\n")
    hint = rest.strip().removeprefix("hint: ") or "do not change files while the pipeline reads them"
    return type(error)(error.errno, three_parts(before + clause, where=where, hint=hint))


def is_translated(error: OSError) -> bool:
    """True if an error has the text of `translate_errors`, which names no step."""
    return "is_translated" in error.__dict__


def _marked(error: OSError) -> OSError:
    """The error with a note that it has its final text."""
    error.__dict__["is_translated"] = True
    return error


class _Reading(io.RawIOBase):
    """A file of a store that is open for reading."""

    def __init__(self, file: Any, path: str) -> None:
        self._file = file
        self._path = path
        self.size = int(file.size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def read(self, size: int | None = -1) -> bytes:
        with translate_errors(self._path):
            return bytes(self._file.read(-1 if size is None else size))

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, into: Any) -> int:
        data = self.read(len(into))
        into[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _Writing(io.RawIOBase):
    """A file that reaches its store when it is closed, and only if the block around it has not failed."""

    def __init__(self, path: str, compression: str) -> None:
        self._path = path
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-")
        self._local = os.path.join(self._folder.name, "file")
        self._file = open_compressed(self._local, "wb", compression)
        self._has_failed = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(data)
        return len(data)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._has_failed = kind is not None
        self.close()

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        try:
            self._file.close()
            if not self._has_failed:
                upload(self._local, self._path)
        finally:
            self._folder.cleanup()

    def __del__(self) -> None:
        # A file that was never closed is not whole.
        self._has_failed = True
        if not self.closed:
            self.close()


def upload(local: str, path: str) -> None:
    """Stores a local file under a URL: readers see all of it, or nothing."""
    with translate_errors(path):
        _package(path).put_file(local, path)


def _package(path: str) -> Any:
    """The fsspec file system of a URL; settings come from the environment and fsspec's own configuration."""
    check_store_url(path)
    import fsspec

    scheme, settings = path.partition("://")[0].lower(), settings_of_stores()
    kind = fsspec.get_filesystem_class(scheme)
    if _settings_of.setdefault(kind, settings) != settings:
        # A program may correct its credentials, and try again.
        kind.clear_instance_cache()
        _settings_of[kind] = settings
    system = fsspec.filesystem(scheme, **_account(path))
    # Somebody else may write at any time.
    system.invalidate_cache()
    return system


def settings_of_stores() -> dict[str, str]:
    """Returns the variables of the environment that the packages of stores read."""
    return {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}


def _account(path: str) -> dict[str, str]:
    """The account that a URL of Azure names: ``abfss://container@account.dfs.core.windows.net/path``."""
    host = path.partition("://")[2].partition("/")[0]
    account = host.partition("@")[2].partition(".")[0]
    return {"account_name": account} if account and store_of(path) is _AZURE else {}


class ObjectStore(FileSystem):
    """The file operations of the stores in `STORES`; a path is a URL.

    Credentials and addresses come from the environment (such as ``AWS_ACCESS_KEY_ID`` and ``AWS_ENDPOINT_URL``) and
    from fsspec's configuration (``~/.config/fsspec`` and ``FSSPEC_...``). A store has no folders: a path "exists" if a
    file has it, or names with a slash after it. A file that is written appears when it is closed, whole.

    >>> ObjectStore().join("s3://bucket/logs", "may.txt"), ObjectStore().split("s3://bucket/logs/may.txt")
    ('s3://bucket/logs/may.txt', ('s3://bucket/logs', 'may.txt'))
    """

    @classmethod
    def scheme(cls) -> str | None:
        # It has many; a class of the user's comes first for each of them.
        return ""

    def has_dirs(self) -> bool:
        return False

    def join(self, basepath: str, *paths: str) -> str:
        return "/".join([basepath.rstrip("/"), *(path.strip("/") for path in paths)])

    def split(self, path: str) -> tuple[str, str]:
        folder, _, name = path.rstrip("/").rpartition("/")
        return (path, "") if folder.endswith(":/") else (folder, name)

    def mkdirs(self, path: str) -> None:
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)

    def _candidates(self, folder: str, pattern: str) -> Iterable[FileMetadata]:
        """The names that begin as a pattern does; a single star in the last part needs no deeper look."""
        last = folder.rpartition("/")[2]
        rest = pattern[len(folder) :]
        if "**" in rest or "[" in rest or "?" in rest or "/" in rest:
            return self._list(folder)
        return self._listed(
            folder[: len(folder) - len(last)], lambda system, top: system.ls(top, detail=True)
        )

    def _list(self, dir_or_prefix: str) -> Iterable[FileMetadata]:
        folder, _, last = dir_or_prefix.rpartition("/")
        if folder.endswith(":/"):
            folder, last = dir_or_prefix, ""

        def found(system: Any, top: str) -> list[Any]:
            return list(system.find(top, detail=True, **({"prefix": last} if last else {})).values())

        return self._listed(folder, found)

    def _listed(self, folder: str, look: Callable[[Any, str], Iterable[Any]]) -> list[FileMetadata]:
        with translate_errors(folder):
            system = _package(folder)
            try:
                found = look(system, folder.rstrip("/"))
            except FileNotFoundError:
                return []
            root = _root(folder)
            files = (each for each in found if each["type"] == "file" and not each["name"].endswith("/"))
            return [_metadata(root + each["name"].partition("/")[2], each) for each in files]

    def create(
        self,
        path: str,
        mime_type: str = "application/octet-stream",
        compression_type: str = CompressionTypes.AUTO,
    ) -> BinaryIO:
        check_store_url(path)
        return cast(BinaryIO, _Writing(path, resolve_compression(path, compression_type)))

    def open(
        self,
        path: str,
        mime_type: str = "application/octet-stream",
        compression_type: str = CompressionTypes.AUTO,
    ) -> BinaryIO:
        return open_compressed(path, "rb", compression_type, self.open_stored(path))

    def open_stored(self, path: str, *, reads_ahead: bool = True) -> BinaryIO:
        """Opens the stored bytes; without `reads_ahead`, each read is one request."""
        cache = {"cache_type": "readahead" if reads_ahead else "none", "block_size": _BLOCK_BYTES}
        with translate_errors(path):
            return cast(BinaryIO, _Reading(_package(path).open(path, "rb", **cache), path))

    def copy(self, source_file_names: Sequence[str], destination_file_names: Sequence[str]) -> None:
        for_each("Copy", self._copy, source_file_names, destination_file_names)

    def rename(self, source_file_names: Sequence[str], destination_file_names: Sequence[str]) -> None:
        """Copies each source, and then deletes it: no store of this kind renames."""
        for_each("Rename", self._move, source_file_names, destination_file_names)

    def _copy(self, source: str, destination: str) -> None:
        system = _package(source)
        with translate_errors(source):
            if system.isfile(source):
                system.cp_file(source, destination)
                return
        inside = [each.path for each in self._list(source.rstrip("/") + "/")]
        if not inside:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        for path in inside:
            with translate_errors(path):
                system.cp_file(path, destination.rstrip("/") + path[len(source.rstrip("/")) :])

    def _move(self, source: str, destination: str) -> None:
        self._copy(source, destination)
        self.delete([source])

    def exists(self, path: str) -> bool:
        with translate_errors(path):
            return bool(_package(path).exists(path))

    def metadata(self, path: str) -> FileMetadata:
        return _metadata(path, self._info(path))

    def checksum(self, path: str) -> str:
        found = self._info(path)
        return str(next((found[name] for name in _MARKS if found.get(name)), found.get("size")))

    def _info(self, path: str) -> dict[str, Any]:
        try:
            with translate_errors(path):
                found: dict[str, Any] = _package(path).info(path)
                return found
        except FileNotFoundError as error:
            raise BeamIOError(f"Path does not exist: {path}") from error

    def delete(self, paths: Sequence[str]) -> None:
        failures: dict[Any, Exception] = {}
        for pattern in paths:
            try:
                self._delete(pattern)
            except OSError as error:
                failures[pattern] = error
        if failures:
            raise BeamIOError("Delete operation failed", failures)

    def _delete(self, pattern: str) -> None:
        has_wildcard = re.search(r"[*?\[]", pattern) is not None
        found = [each.path for each in self.match([pattern])[0].metadata_list] if has_wildcard else []
        if not has_wildcard:
            with translate_errors(pattern):
                is_file = _package(pattern).isfile(pattern)
            inside = [] if is_file else self._list(pattern.rstrip("/") + "/")
            found = [pattern] if is_file else [each.path for each in inside]
        if not found:
            raise OSError(f"No files found to delete under: {pattern}")
        for path in found:
            with translate_errors(path):
                _package(path).rm_file(path)


def _root(path: str) -> str:
    """Returns the part before a file's name in a URL: the scheme and the bucket, as the user writes them."""
    scheme, _, rest = path.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/"


def _metadata(path: str, found: dict[str, Any]) -> FileMetadata:
    changed = next((found[name] for name in _CHANGED if found.get(name)), None)
    if isinstance(changed, str):
        changed = datetime.datetime.fromisoformat(changed)
    seconds = changed.timestamp() if isinstance(changed, datetime.datetime) else float(changed or 0.0)
    return FileMetadata(path, int(found.get("size") or 0), seconds)
