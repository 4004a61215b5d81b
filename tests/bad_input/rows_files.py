"""Bad input: files that are read."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "Files that are read",
    "",
    (
        Row(
            "a file that is missing",
            write="""
                p | beam.io.ReadFromText("scores.txt")
                """,
            see="""
                FileNotFoundError: No files found based on the file pattern ./scores.txt
                  at step 'ReadFromText' (game.py:1)
                  hint: check the path, or pass validate=False
                """,
        ),
        Row(
            "a pattern that matches nothing",
            write="""
                p | beam.io.ReadFromText("scores/*.txt")
                """,
            see="""
                FileNotFoundError: No files found based on the file pattern scores/*.txt
                  at step 'ReadFromText' (game.py:1)
                  hint: check the path, or pass validate=False
                """,
        ),
        Row(
            "an empty path",
            write="""
                p | beam.io.ReadFromText("")
                """,
            see="""
                ValueError: file_pattern is empty
                  at game.py:1
                  hint: pass a path, such as 'data/scores.txt'
                """,
        ),
        Row(
            "a URL with one slash",
            write="""
                p | beam.io.ReadFromText("file:/data/scores.txt")
                """,
            see="""
                ValueError: file_pattern 'file:/data/scores.txt' has one slash after file:, and would be a folder of that name
                  at game.py:1
                  hint: write 'file:///data/scores.txt'
                """,
        ),
        Row(
            "a number as a path",
            write="""
                p | beam.io.ReadFromText(5)
                """,
            see="""
                TypeError: file_pattern must be of type string or ValueProvider; got 5 instead
                  at game.py:1
                  hint: write file_pattern='5'
                """,
        ),
        Row(
            "a list of paths",
            write="""
                p | beam.io.ReadFromText(["a.txt", "b.txt"])
                """,
            see="""
                TypeError: file_pattern must be of type string or ValueProvider; got ['a.txt', 'b.txt'] instead
                  at game.py:1
                  hint: pass a pattern that all of them match, or read each in a separate step and Flatten the results
                """,
        ),
        Row(
            "a compression that does not exist",
            write="""
                p | beam.io.ReadFromText("scores.txt", compression_type="zip")
                """,
            see="""
                TypeError: compression_type must be CompressionType object but was <class 'str'>
                  at game.py:1
                  hint: use one of the names in penstock.io.filesystem.CompressionTypes
                """,
        ),
        Row(
            "a delimiter that is a string",
            write="""
                p | beam.io.ReadFromText("scores.txt", delimiter=",")
                """,
            see="""
                ValueError: Delimiter must be a non-empty bytes sequence.
                  at game.py:1
                  hint: write delimiter=b'|', not ','
                """,
        ),
        Row(
            "a delimiter that overlaps itself",
            write="""
                p | beam.io.ReadFromText("scores.txt", delimiter=b"||")
                """,
            see="""
                ValueError: Delimiter must not self-overlap.
                  at game.py:1
                  hint: use a delimiter whose beginning is not also its end
                """,
        ),
        Row(
            "a negative number of header lines",
            write="""
                p | beam.io.ReadFromText("scores.txt", skip_header_lines=-1)
                """,
            see="""
                ValueError: Cannot skip negative number of header lines: -1
                  at game.py:1
                  hint: pass 0 or more
                """,
        ),
        Row(
            "a number of header lines as a string",
            write="""
                p | beam.io.ReadFromText("scores.txt", skip_header_lines="1")
                """,
            see="""
                TypeError: skip_header_lines must be an integer, but is '1'
                  at game.py:1
                  hint: pass skip_header_lines=1
                """,
        ),
        Row(
            "a coder that is not one",
            write="""
                p | beam.io.ReadFromText("scores.txt", coder="latin-1")
                """,
            see="""
                TypeError: coder must be a coder, but is 'latin-1'
                  at game.py:1
                  hint: pass coder=BytesCoder(), or your own coder
                """,
        ),
        Row(
            "an argument of pandas that is not supported",
            write="""
                p | beam.io.ReadFromCsv("scores.csv", parse_dates=["at"])
                """,
            see="""
                TypeError: ReadFromCsv does not support the arguments parse_dates
                  at game.py:1
                  hint: use only these: comment, delimiter, dtype, encoding, escapechar, header, keep_default_na, na_values, names, quotechar, sep, skipinitialspace, usecols
                """,
            files={"scores.csv": "at\n2026-01-01\n"},
        ),
        Row(
            "a separator that is empty",
            write="""
                p | beam.io.ReadFromCsv("scores.csv", sep="")
                """,
            see="""
                ValueError: sep must be a string, but is ''
                  at game.py:1
                  hint: write sep=';', for example
                """,
            files={"scores.csv": "team,points\n"},
        ),
        Row(
            "a quote of two characters",
            write="""
                p | beam.io.ReadFromCsv("scores.csv", quotechar="''")
                """,
            see="""
                ValueError: quotechar must be one character, but is "''"
                  at game.py:1
                  hint: write quotechar="'", for example
                """,
            files={"scores.csv": "team,points\n"},
        ),
        Row(
            "a rule for empty matches that does not exist",
            write="""
                from penstock.io import fileio

                p | fileio.MatchFiles("scores/*", empty_match_treatment="NEVER")
                """,
            see="""
                ValueError: 'NEVER' is not an EmptyMatchTreatment
                  at game.py:3
                  hint: pass ALLOW, DISALLOW or ALLOW_IF_WILDCARD
                """,
        ),
        Row(
            "a Spark format that is not a string",
            write="""
                p | beam.io.ReadFromSpark(None)
                """,
            see="""
                TypeError: the format must be the name of a Spark format, but is None
                  at game.py:1
                  hint: write 'parquet', for example
                """,
        ),
    ),
)
