"""Errors of reading a file that name the file, and of strings that a file cannot hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.error import refusal, three_parts

_HINT = "write the file again, or leave it out"


@contextmanager
def add_file_name(path: str) -> Iterator[None]:
    """Puts the name of the file into an error that does not have it, and keeps its type where that is possible.

    >>> with add_file_name("/data/a.gz"):
    ...     raise EOFError("Compressed file ended")
    Traceback (most recent call last):
        ...
    EOFError: /data/a.gz cannot be read: Compressed file ended
      hint: write the file again, or leave it out
    """
    try:
        yield
    except Exception as error:
        if path in str(error):
            raise
        raise _named(error, path) from error


def _named(error: Exception, path: str) -> Exception:
    if isinstance(error, UnicodeDecodeError):
        return make_decoding_error(error, path, None, _HINT)
    what = f"{path} cannot be read: {str(error).partition(chr(10))[0] or type(error).__name__}"
    try:
        # The caller adds the place.
        return refusal(type(error), what, where="", hint=_HINT)
    except TypeError:
        return refusal(ValueError, what, where="", hint=_HINT)


def make_decoding_error(
    error: UnicodeDecodeError, path: str | None, where: str | None, hint: str
) -> UnicodeDecodeError:
    """Returns the error about bytes that are not text, with the file if it is known, the place and the hint."""
    what = error.reason if path is None else f"{error.reason} in {path}"
    reason = three_parts(what, where=where, hint=hint)
    return UnicodeDecodeError(error.encoding, error.object, error.start, error.end, reason)


def encode_text(text: str, encoding: str = "utf-8", whose: Callable[[], str] = str) -> bytes:
    r"""Returns the bytes of a string; the error for a character that the encoding lacks shows no other part of it.

    `whose` then says where in the text such a character is, such as ``" in the field team"``.

    >>> encode_text("a secret\ud800")
    Traceback (most recent call last):
        ...
    UnicodeEncodeError: 'utf-8' codec can't encode character '\ud800' in position 0: surrogates not allowed
      hint: replace such characters first: text.encode('utf-8', 'replace').decode('utf-8')
    """
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise _unencodable(error, whose()) from None


def _unencodable(error: UnicodeEncodeError, whose: str) -> UnicodeEncodeError:
    """Returns the error with a hint, and without the string, which its ``repr`` would show."""
    hint = f"replace such characters first: text.encode({error.encoding!r}, 'replace').decode({error.encoding!r})"
    reason = three_parts(error.reason + whose, hint=hint)
    return UnicodeEncodeError(error.encoding, error.object[error.start], 0, 1, reason)
