"""CSV files: Spark's parser, with the types and the missing values that pandas would see."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from penstock.checks.similar_names import find_nearest
from penstock.elements.row import Row
from penstock.error import refusal
from penstock.io.csvio import CsvSource
from penstock.io.formats.declared_fields import (
    KEEPS_APART,
    make_misfit,
    make_missing,
    needed_fields,
    show_field_type,
)
from penstock.io.rejects import Unreadable
from penstock.scalars.spark_forms import quote_name
from penstock.typehints import typehints
from penstock_spark.columns.record_makers import rows_of
from penstock_spark.columns.types import type_in_python
from penstock_spark.files.finding import Files, Namer, find_files
from penstock_spark.formats.csv import records
from penstock_spark.formats.csv.kinds import (
    BOOL,
    FLOAT,
    INT,
    PARSERS,
    asked_kinds,
    fits,
    fits_text,
    hint_of,
    is_declared_only,
    to_decode,
    typed,
)
from penstock_spark.formats.csv.quotes import ends_in_comment, ends_in_quote
from penstock_spark.reports.failure import find_failure, to_exception
from penstock_spark.sources.partition_values import partition_values
from penstock_spark.sources.scan import Scan
from penstock_spark.sources.stream_files import FILE

# The strings that pandas takes for a missing value unless keep_default_na=False.
_MISSING = [
    "",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
    "1.#QNAN",
    "<NA>",
] + ["N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
# Java's names of the encodings that Python knows by many names.
_CHARSETS = {
    "ascii": "US-ASCII",
    "iso8859-1": "ISO-8859-1",
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-be": "UTF-16BE",
    "utf-16-le": "UTF-16LE",
    "utf-32": "UTF-32",
}
REPLACEMENT = "\ufffd"
"""The character with which Java replaces bytes that an encoding does not have."""
MALFORMED = "__malformed"
"""The column of lines that are not CSV."""


def open_csv(source: CsvSource, spark: SparkSession, where: str) -> Scan:
    """Rows; reads the data once to find the types and the malformed lines."""
    options = dict(source.options)
    values = partition_values(source.partition_by, source.schema, where)
    files = find_files(spark, source.file_pattern, where)
    values.check(files.paths)
    check = files.make_size_check(where)
    names = names_of(spark, files, source, options)

    def malformed(count: int, file: str) -> ValueError:
        path = files.namer()(file)
        which = records.first_malformed(spark, path, files, source, options, len(names))
        return malformed_lines(count, path, where, which)

    if not records.is_multi_line(source, options):
        _check_quotes(spark, files, source, options, malformed)
    check_names(names, options, source, where)
    strings = _texts(spark, files, source, options, names)
    survey = _surveyed(strings, names, options, asked_kinds(names, options, where))
    if survey.file_with_replacements or any(REPLACEMENT in name for name in names):
        _check_encoding(spark, files, options, survey.file_with_replacements or files.paths[0], where)
    if survey.malformed:
        raise malformed(survey.malformed, survey.file_with_malformed)

    def refuse(why: Unreadable, is_wrong: Callable[[str], bool]) -> ValueError:
        assert why.field is not None
        found = records.first_wrong(spark, files, source, options, names.index(why.field), is_wrong)
        place = "" if found is None else f"line {found[1]} of {found[0]} cannot be read: "
        return refusal(ValueError, f"{place}{why}", where=where, hint=why.hint)

    def misfit(name: str, kind: str) -> ValueError:
        missing, fits = missing_texts(name, options), fits_text(kind)
        return refuse(make_misfit(name, hint_of(kind)), lambda text: text not in missing and not fits(text))

    kinds = _kinds(survey, names, options, where, misfit)
    for name in needed_fields(source.declared):
        if name in survey.with_missing:
            raise refuse(make_missing_in(source, name), missing_texts(name, options).__contains__)
    check_found(source, {name: kinds[name] for name in values.others(kinds)}, where)
    wanted = {name: kinds[name] for name in values.others(options.get("usecols") or names)}
    beside = []
    if source.filename_column is not None:
        beside.append(F.col("_metadata.file_path").alias(source.filename_column))
    if values.names:
        beside.append(F.col("_metadata.file_path").alias(FILE))

    def rows(make: Callable[[Column, str], Column]) -> DataFrame:
        columns = [make(missing_as_null(name, options), kind).alias(name) for name, kind in wanted.items()]
        return strings.select(*columns, *beside)

    namer = files.namer()
    decode = decoder_of(source, wanted, namer)

    def decode_files(batch: pa.RecordBatch) -> list[Row]:
        return decode(values.replace_file_column(batch, namer).select(decode.names))

    decoded = rows(to_decode) if decode.parsers else None
    return Scan(rows(typed), lambda: decode_files if values.names else decode, check=check, to_decode=decoded)


def make_missing_in(source: CsvSource, name: str) -> Unreadable:
    """Why a record without a value in a column that needs one cannot be read."""
    hint = dict(source.declared)[name]
    has_texts = hint is str and dict(source.options).get("keep_default_na", True)
    ways = ["pass keep_default_na=False, which reads an empty field as ''"] if has_texts else []
    return make_missing(name, hint, *ways, KEEPS_APART)


def names_of(spark: SparkSession, files: Files, source: CsvSource, options: dict[str, Any]) -> list[str]:
    """The names of the columns: the user's, or the names in the files' header, or numbers."""
    names: list[str] | None = options.get("names")
    if names is not None:
        return list(names)
    if records.are_cut_by_tasks(files, source, options):
        return records.names_of(spark, files, options, has_header(options))
    reader = spark.read.options(**parser_options(options, False))
    names = files.load(reader.option("header", has_header(options)), "csv").columns
    return names if has_header(options) else [str(number) for number in range(len(names))]


def check_names(names: list[str], options: dict[str, Any], source: CsvSource, where: str) -> None:
    """Refuses files without any column, and columns that the user wants and no file has."""
    if not names:
        what = f"{source.describe()} has no columns: the files are empty"
        raise refusal(
            ValueError, what, where=where, hint="pass names=[...], or give a pattern without these files"
        )
    dtype = options.get("dtype")
    wanted = [*(options.get("usecols") or ()), *(dtype if isinstance(dtype, dict) else ())]
    for name in wanted:
        if name not in {*names, *source.partition_by}:
            near = find_nearest(str(name), names)
            question = f"did you mean {near!r}? " if near else ""
            what = f"{source.describe()} has no column {name!r}"
            raise refusal(
                ValueError, what, where=where, hint=f"{question}The columns are: {', '.join(names)}"
            )


def has_header(options: dict[str, Any]) -> bool:
    header = options.get("header", "infer")
    return header == 0 or (header == "infer" and options.get("names") is None)


def text_schema(names: list[str]) -> StructType:
    return StructType([StructField(name, StringType()) for name in [*names, MALFORMED]])


def reader_options(options: dict[str, Any], multi_line: bool) -> dict[str, Any]:
    """The options with which Spark's reader makes columns of `text_schema`."""
    # Names from the user replace the header; otherwise every file must have the same one.
    enforced = options.get("names") is not None or not has_header(options)
    own = {"header": has_header(options), "enforceSchema": enforced}
    return {**parser_options(options, multi_line), **own}


def _texts(
    spark: SparkSession,
    files: Files,
    source: CsvSource,
    options: dict[str, Any],
    names: list[str],
    errors: str = "strict",
) -> DataFrame:
    if records.are_cut_by_tasks(files, source, options):
        found = records.records_of(
            spark, files, source, options, has_header=has_header(options), errors=errors
        )
        return records.parsed(found, names, MALFORMED, parser_options(options, not source.splittable))
    reader = spark.read.options(**reader_options(options, False))
    return files.load(reader.schema(text_schema(names)), "csv")


def parser_options(options: dict[str, Any], multi_line: bool) -> dict[str, Any]:
    """Returns options for Spark's parser that mean the same as the user's in pandas; it sees no comments."""
    quote = options.get("quotechar", '"')
    chosen = {
        "sep": options.get("sep") or options.get("delimiter") or ",",
        "quote": quote,
        # Within quotes a quote is written twice, unless there is an escape.
        "escape": options.get("escapechar") or quote,
        "encoding": java_charset(options.get("encoding")),
        "ignoreLeadingWhiteSpace": options.get("skipinitialspace", False),
        "multiLine": multi_line,
        "mode": "PERMISSIVE",
        # Text after a closing quote belongs to the field, as in pandas.
        "unescapedQuoteHandling": "BACK_TO_DELIMITER",
        # A line with too many fields is only noticed where all of them are parsed.
        "columnPruning": False,
        "columnNameOfCorruptRecord": MALFORMED,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def java_charset(encoding: str | None) -> str | None:
    """Java's name of an encoding; an encoding that only Java may know stays unchanged.

    >>> java_charset("latin1"), java_charset("utf8"), java_charset("x-other"), java_charset(None)
    ('ISO-8859-1', 'UTF-8', 'x-other', None)
    """
    if encoding is None:
        return None
    try:
        return _CHARSETS.get(codecs.lookup(encoding).name, encoding)
    except LookupError:
        return encoding


def malformed_lines(count: int, file: str, where: str, which: str = "") -> ValueError:
    """The error for lines that are not CSV.

    Args:
        count: How many there are.
        file: The first file with such a line.
        where: The step.
        which: The first such line.
    """
    what = f"{count} malformed line{'s' * (count > 1)} of CSV, the first file with one being {file}{which}"
    hint = "each line needs as many fields as the header; splittable=False allows line ends in quotes; rejects=True "
    hint += "keeps such lines apart"
    return refusal(ValueError, what, where=where, hint=hint)


def _check_quotes(
    spark: SparkSession,
    files: Files,
    source: CsvSource,
    options: dict[str, Any],
    malformed: Callable[[int, str], ValueError],
) -> None:
    """Raises ValueError for a quote that is still open at the end of its line; Spark's parser would close it."""
    if not shows_quotes(options):
        return
    if records.are_cut_by_tasks(files, source, options):
        strings = records.records_of(spark, files, source, options, has_header=False)
    else:
        strings = files.load(spark.read, "text")
    lines = strings.select("value", F.col("_metadata.file_path").alias("file")).where(
        open_quote_column(options)
    )
    [(count, file)] = _collected(lines.agg(F.count("*"), F.min("file")))
    if count:
        raise malformed(count, file)


def shows_quotes(options: dict[str, Any]) -> bool:
    encoding = str(options.get("encoding") or "utf-8").lower().replace("_", "-")
    return not options.get("escapechar") and encoding in {"utf-8", "utf8", "ascii"}


def open_quote_column(options: dict[str, Any]) -> Column:
    """Returns a column that is true where the line in the column `value` ends within a quote."""
    return F.col("value").rlike(f"^{ends_in_quote(options)}$")


def without_comment(text: Column, options: dict[str, Any]) -> Column:
    """A line without its comment."""
    comment = options.get("comment")
    if not comment:
        return text
    cut = F.regexp_replace(text, F.lit(f"^{ends_in_comment(options)}$"), F.lit("$1"))
    return F.when(F.contains(text, F.lit(comment)), cut).otherwise(text)


def column(name: str) -> Column:
    """The column with a name, which may have any characters."""
    return F.col(quote_name(name))


def missing_as_null(name: str, options: dict[str, Any]) -> Column:
    """A column of strings, with null for each string that pandas takes for a missing value."""
    text = column(name)
    missing = missing_texts(name, options)
    # Spark cannot distinguish an empty field from a missing one; without the defaults it is an empty string.
    text = text if options.get("keep_default_na", True) else F.coalesce(text, F.lit(""))
    return F.when(~text.isin(missing), text) if missing else text


def missing_texts(name: str, options: dict[str, Any]) -> list[str]:
    given = options.get("na_values") or []
    given = given.get(name, []) if isinstance(given, dict) else given
    added = [str(value) for value in ([given] if isinstance(given, str) else given)]
    return (_MISSING if options.get("keep_default_na", True) else []) + added


def _kinds(
    survey: Survey,
    names: list[str],
    options: dict[str, Any],
    where: str,
    misfit: Callable[[str, str], ValueError],
) -> dict[str, str]:
    """The kind of each column: the user's choice, if the data agrees, else what the data shows."""
    asked = asked_kinds(names, options, where)
    found = survey.kinds
    for name, kind in asked.items():
        if kind is not None and kind != "str" and not _agrees(kind, found[name]):
            raise misfit(name, kind)
    return {name: _settled(asked[name], found[name]) for name in names}


def check_found(source: CsvSource, kinds: dict[str, str], where: str) -> None:
    """Raises ValueError if a column's type differs from the type found when the pipeline was built."""
    for name, hint in () if source.found is None else source.found.fields:
        if name not in kinds or not typehints.is_nullable(hint):
            continue
        taken = typehints.get_concrete_type_from_nullable(hint)
        found = hint_of(kinds[name])
        if taken != found:
            seemed, later = show_field_type(taken), show_field_type(found)
            what = f"the column {name} seemed to be {seemed} at the beginning of {source.describe()}"
            hint = f"pass dtype={{{name!r}: {later}}}, because later values have that type"
            raise refusal(ValueError, what, where=where, hint=hint)


class Survey(NamedTuple):
    """The findings of a survey of all records; its files have Spark's names."""

    kinds: dict[str, str]  # By the names of the columns.
    malformed: int  # The number of lines that are not CSV.
    file_with_malformed: str  # The first one.
    file_with_replacements: str | None  # The first one with a `REPLACEMENT`.
    with_missing: frozenset[str]  # The columns that have missing values.


def _surveyed(
    strings: DataFrame, names: list[str], options: dict[str, Any], asked: dict[str, str | None]
) -> Survey:
    """Looks at each field as at a row of its own: Spark takes minutes for aggregates of a thousand columns."""
    only_declared = {kind for kind in asked.values() if kind is not None and is_declared_only(kind)}
    declared = {kind: [at for at, name in enumerate(names) if asked[name] == kind] for kind in only_declared}
    fields = F.array(*(missing_as_null(name, options) for name in names), column(MALFORMED))
    path = F.col("_metadata.file_path").alias("file")
    text, file = F.col("text"), F.col("file")
    found = _collected(
        strings.select(F.posexplode(fields).alias("place", "text"), path)
        .groupBy("place")
        .agg(
            F.bit_and(_kinds_of(text)),
            F.count(text),
            F.min(F.when(text.isNotNull(), file)),
            F.min(F.when(F.contains(text, F.lit(REPLACEMENT)), file)),
            F.coalesce(F.bool_and(_fits_declared(text, declared)), F.lit(True)),
            F.count("*"),
        )
    )
    kinds = dict.fromkeys(names, "empty")
    malformed, with_malformed, with_replacements, with_missing = 0, "", [], []
    for place, all_have, count, first, replaced, fits_declared, count_of_records in found:
        if place < len(names):
            kind = asked[names[place]]
            is_declared = kind in only_declared and fits_declared
            kinds[names[place]] = str(kind) if is_declared else _kind(all_have)
            if count < count_of_records:
                with_missing.append(names[place])
        else:
            malformed, with_malformed = count, first
        with_replacements.append(replaced)
    first_replaced = min(filter(None, with_replacements), default=None)
    return Survey(kinds, malformed, with_malformed, first_replaced, frozenset(with_missing))


def _fits_declared(text: Column, declared: dict[str, list[int]]) -> Column:
    """Null, or whether a text is a value of the kind that the user has declared for its column."""
    place = F.col("place")
    each = [F.when(place.isin(places), fits(text, kind)) for kind, places in declared.items() if places]
    return F.coalesce(F.lit(None).cast("boolean"), *each)


def _collected(frame: DataFrame) -> list[Any]:
    """The rows of a frame; what a task has raised is raised as itself."""
    try:
        return frame.collect()
    except PySparkException as error:
        failure = find_failure(str(error))
        if failure is None or failure.exception is None:
            raise
        failed = to_exception(failure)
        raise failed from failed.__cause__


def _check_encoding(
    spark: SparkSession, files: Files, options: dict[str, Any], file: str, where: str
) -> None:
    """Raises ValueError if the replacements of a file are not in it, but stand for bytes that were not decoded."""
    encoding = options.get("encoding") or "utf-8"
    if java_charset(encoding) == "UTF-8" and not files.is_unsupported_by_spark:
        lines = files.load(spark.read, "text").where(~F.is_valid_utf8("value"))
        [(file,)] = lines.agg(F.min("_metadata.file_path")).collect()
        if file is None:
            return
    raise not_decoded(encoding, files.namer()(file), where)


def not_decoded(encoding: str, file: str, where: str) -> ValueError:
    """The error for a file with bytes that its encoding does not have."""
    what = f"{file} has text that is not {encoding}"
    return refusal(ValueError, what, where=where, hint="pass encoding='latin-1', for example")


def found_kinds(
    spark: SparkSession, files: Files, source: CsvSource, options: dict[str, Any], names: list[str]
) -> dict[str, str]:
    """The kinds of the columns, by the records that can be read: what is wrong with others is found when it is read."""
    strings = _texts(spark, files, source, options, names, errors="replace")
    is_decoded = ~F.contains(F.concat_ws("", *map(column, names)), F.lit(REPLACEMENT))
    found = _surveyed(
        strings.where(F.col(MALFORMED).isNull() & is_decoded), names, options, dict.fromkeys(names)
    ).kinds
    return {name: _settled(None, kind) for name, kind in found.items()}


def _settled(asked: str | None, found: str) -> str:
    if asked is None or (asked == "int" and found == "long int"):
        return "str" if found == "empty" else found
    return asked


def _agrees(asked: str, found: str) -> bool:
    return found in {asked, "empty"} or found in {"int": {"long int"}, "float": {"int", "long int"}}.get(
        asked, set()
    )


_BITS = {"int": 1, "long int": 2, "float": 4, "bool": 8}
"""The kinds that a text may have, as bits; a text has all kinds that hold it."""


def _kinds_of(text: Column) -> Column:
    """The bits of the kinds of a text; null for a missing value."""
    long_int = _BITS["long int"] | _BITS["float"]
    fits = F.when(text.try_cast("bigint").isNotNull(), long_int | _BITS["int"]).otherwise(long_int)
    bits = F.when(text.rlike(INT), fits).when(text.rlike(FLOAT), _BITS["float"])
    return bits.when(text.rlike(BOOL), _BITS["bool"]).when(text.isNotNull(), 0)


def _kind(bits: int | None) -> str:
    """The kind of a column, by the bits that all its strings have; None if they are all missing."""
    if bits is None:
        return "empty"
    return next((kind for kind, bit in _BITS.items() if bits & bit), "str")


def decoder_of(source: CsvSource, kinds: dict[str, str], namer: Namer) -> CsvDecoder:
    """The decoder of columns of these kinds, then of the file's name, then of the columns of folders."""
    wanted = dict(source.options).get("usecols") or source.partition_by
    folders = [name for name in source.partition_by if name in wanted]
    added = [] if source.filename_column is None else [source.filename_column]
    parsers = {at: PARSERS[kind] for at, kind in enumerate(kinds.values()) if kind in PARSERS}
    return CsvDecoder((*kinds, *added, *folders), parsers, len(kinds) if added else None, namer)


@dataclass(frozen=True)
class CsvDecoder:
    names: tuple[str, ...]
    parsers: Mapping[int, Callable[[str], object]]  # What makes values of the text of a column, by its place.
    file_at: int | None  # Where the file's name is, as Spark has it.
    namer: Namer

    def __call__(self, batch: pa.RecordBatch) -> list[Row]:
        columns = [_in_python(column).to_pylist() for column in batch.columns]
        for at, parse in self.parsers.items():
            columns[at] = [None if value is None else parse(value) for value in columns[at]]
        if self.file_at is not None:
            columns[self.file_at] = [self.namer(file) for file in columns[self.file_at]]
        return rows_of(self.names, columns, batch.num_rows)


def _in_python(column: pa.Array) -> pa.Array:
    """A column in the type in which Python reads it: Spark has instants in the zone of its session."""
    wanted = type_in_python(column.type)
    return column if wanted == column.type else column.cast(wanted)
