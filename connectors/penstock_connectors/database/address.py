"""The address of a database: its URL, the packages that it needs, and a form that travels to the tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.error import UnsupportedByRunner, noun_for, refusal
from penstock.io.database import DatabaseSink, DatabaseSource, redact_url
from penstock.io.postgres_changes import PostgresChangesSource
from penstock_connectors.packages import PSYCOPG, SQLALCHEMY
from penstock_spark.connecting.formats import Package

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

_POSTGRES = ("postgres", "postgresql", "postgresql+psycopg")
CONNECT_TIMEOUT_SECONDS = 10


@dataclass(frozen=True)
class Address:
    """A database and a table in it; if the URL is a function, pickling calls it and keeps what it returns."""

    url: str | Callable[[], str] = field(repr=False)
    table: str
    shown: str
    where: str

    @staticmethod
    def of(place: DatabaseSink | DatabaseSource, where: str) -> Address:
        return Address(place.url, place.table or "", redact_url(place.url), where)

    def __reduce__(self) -> tuple[Any, ...]:
        return Address, (self.text(), self.table, self.shown, self.where)

    def text(self) -> str:
        """Returns the URL, which may have a password; an error of the user's function becomes one of the step."""
        if isinstance(self.url, str):
            return self.url
        try:
            text = self.url()
        except Exception as error:
            what = f"the function that returns the url of the database raised {type(error).__name__}"
            raise refusal(
                ValueError, what, where=self.where, hint="call it yourself to see the error"
            ) from None
        if not isinstance(text, str):
            what = f"the function that should return the url of the database returned {noun_for(text)}"
            raise refusal(
                TypeError, what, where=self.where, hint="return a string such as postgresql://host/name"
            )
        return text

    def parse(self) -> URL:
        """Returns the URL; refuses one that cannot be read, or that needs a package which is not there."""
        SQLALCHEMY.check(self.where)
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError

        text = self.text()
        try:
            url = make_url(text)
        except (ArgumentError, ValueError):
            # SQLAlchemy's text shows the URL.
            what = "the url of the database cannot be read"
            hint = "write it as driver://user:password@host:port/name, with %40 for an @ in the password"
            raise refusal(ValueError, what, where=self.where, hint=hint) from None
        if not url.drivername.startswith("postgres"):
            return url
        if url.drivername not in _POSTGRES:
            what = f"penstock connects to PostgreSQL with psycopg, not with {url.drivername}"
            raise UnsupportedByRunner(what, where=self.where, hint="write the url as postgresql://...")
        PSYCOPG.check(self.where)
        return url.set(drivername="postgresql+psycopg")

    @property
    def is_postgres(self) -> bool:
        return self.parse().drivername == "postgresql+psycopg"

    def engine(self) -> Engine:
        """Returns an engine without a pool, whose errors show no values."""
        from sqlalchemy import create_engine, event
        from sqlalchemy.exc import NoSuchModuleError
        from sqlalchemy.pool import NullPool

        url = self.parse()
        options: dict[str, Any] = {}
        if url.drivername.startswith("sqlite"):
            options = {"timeout": 60}  # SQLite has one writer at a time: the others wait.
        elif url.drivername.startswith("postgresql"):
            options = {"connect_timeout": CONNECT_TIMEOUT_SECONDS}
        try:
            engine = create_engine(url, poolclass=NullPool, hide_parameters=True, connect_args=options)
        except NoSuchModuleError:
            what = f"the url begins with {url.drivername}, which SQLAlchemy does not know"
            hint = "check the beginning of the url, or install the package that adds this kind to SQLAlchemy"
            raise UnsupportedByRunner(what, where=self.where, hint=hint) from None
        except ImportError as error:
            what = f"the package {error.name} is missing; it is needed for databases of the kind {url.drivername}"
            raise UnsupportedByRunner(what, where=self.where, hint="install it with pip") from None
        if url.drivername.startswith("postgresql"):
            from penstock_connectors.database.postgres_values import fix_settings

            event.listen(engine, "connect", lambda connection, _: fix_settings(connection))
        return engine

    @property
    def parts(self) -> tuple[str | None, str]:
        """The schema of the table, if it is given, and its name."""
        schema, _, name = self.table.rpartition(".")
        return schema or None, name

    def beside(self, name: str) -> tuple[str, ...]:
        """Returns the name of another table in the same schema, in parts."""
        schema, _ = self.parts
        return (name,) if schema is None else (schema, name)

    def passwords(self) -> tuple[str, ...]:
        """Returns the strings that must never be shown."""
        url = self.parse()
        found = [str(url.password or ""), *map(str, url.query.values()), self.text()]
        return tuple(text for text in found if text)


def packages_of(place: DatabaseSink | DatabaseSource | PostgresChangesSource) -> tuple[Package, ...]:
    """Returns the packages that a database needs, as far as its URL is known before it is asked for."""
    is_postgres = isinstance(place.url, str) and place.url.startswith("postgres")
    return (SQLALCHEMY, PSYCOPG) if is_postgres else (SQLALCHEMY,)
