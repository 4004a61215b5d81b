"""The settings of formats that Spark reads, by which a wrong name is refused: Spark ignores what it does not know."""

from __future__ import annotations

_FILES = (
    *("pathGlobFilter", "modifiedBefore", "modifiedAfter", "recursiveFileLookup", "basePath"),
    *("ignoreCorruptFiles", "ignoreMissingFiles", "ignoreExtension"),
    *("maxFileAge", "latestFirst", "fileNameOnly", "cleanSource", "sourceArchiveDir", "maxCachedFiles"),
    *("discardCachedInputRatio", "maxRecordsPerFile", "partitionOverwriteMode", "compression", "codec"),
)
_TEXT = (
    *("encoding", "charset", "lineSep", "locale", "timeZone", "dateFormat", "timestampFormat", "timeFormat"),
    *("timestampNTZFormat", "enableDateTimeParsingFallback", "mode", "columnNameOfCorruptRecord"),
    *("multiLine", "samplingRatio", "singleVariantColumn"),
)
_OF_FORMAT = {
    "csv": (
        *_FILES,
        *_TEXT,
        *(
            "sep",
            "delimiter",
            "extension",
            "quote",
            "quoteAll",
            "escape",
            "escapeQuotes",
            "comment",
            "header",
        ),
        *("inferSchema", "preferDate", "enforceSchema", "ignoreLeadingWhiteSpace", "nullValue", "nanValue"),
        *("ignoreTrailingWhiteSpace", "positiveInf", "negativeInf", "maxColumns", "maxCharsPerColumn"),
        *("charToEscapeQuoteEscaping", "emptyValue", "unescapedQuoteHandling", "columnPruning"),
        *("inputBufferSize", "maxErrorContentLength"),
    ),
    "json": (
        *_FILES,
        *_TEXT,
        *("primitivesAsString", "prefersDecimal", "allowComments", "allowUnquotedFieldNames"),
        *("allowSingleQuotes", "allowNumericLeadingZeros", "allowNonNumericNumbers"),
        *("allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars", "dropFieldIfAllNull"),
        *(
            "ignoreNullFields",
            "pretty",
            "inferTimestamp",
            "useUnsafeRow",
            "writeNonAsciiCharacterAsCodePoint",
        ),
        *("writeNullIfWithDefaultValue", "explodeEmbeddedArray", "sortKeys"),
    ),
    "text": (*_FILES, "wholetext", "lineSep", "encoding"),
    "parquet": (*_FILES, "mergeSchema", "datetimeRebaseMode", "int96RebaseMode"),
    "orc": (*_FILES, "mergeSchema"),
    "rate": ("rowsPerSecond", "rampUpTime", "numPartitions"),
}


def of_format(format: str) -> frozenset[str]:
    """Returns the settings that Spark's reader or writer of a format knows.

    >>> "header" in of_format("csv"), "header" in of_format("json")
    (True, False)
    """
    return frozenset(_OF_FORMAT[format])
