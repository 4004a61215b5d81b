"""Bad input: sQL."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "SQL",
    "The place in the query comes before the line of the program.",
    (
        Row(
            "a column that does not exist",
            write="""
                from penstock.transforms.sql import SqlTransform

                goals = p | beam.Create([beam.Row(team="red", points=3)])
                {"goals": goals} | SqlTransform("SELECT tem FROM goals")
                """,
            see="""
                penstock.sql.errors.SqlError: there is no column 'tem'
                  line 1, column 8 of the query
                    SELECT tem FROM goals
                           ^
                  at step 'SqlTransform(SELECT tem FROM goals)' (game.py:4)
                  hint: did you mean 'team'?
                """,
        ),
        Row(
            "a table that does not exist",
            write="""
                from penstock.transforms.sql import SqlTransform

                goals = p | beam.Create([beam.Row(team="red", points=3)])
                {"goals": goals} | SqlTransform("SELECT team FROM gaols")
                """,
            see="""
                penstock.sql.errors.SqlError: there is no table 'gaols'
                  line 1, column 18 of the query
                    SELECT team FROM gaols
                                     ^
                  at step 'SqlTransform(SELECT team FROM gaols)' (game.py:4)
                  hint: did you mean 'goals'?
                """,
        ),
        Row(
            "a query that ends too early",
            write="""
                from penstock.transforms.sql import SqlTransform

                p | beam.Create([beam.Row(team="red")]) | SqlTransform("SELECT team FROM")
                """,
            see="""
                penstock.sql.errors.SqlError: expected table name but the query ends
                  line 1, column 13 of the query
                    SELECT team FROM
                                ^
                  at step 'SqlTransform(SELECT team FROM)' (game.py:3)
                  hint: correct the query at this place
                """,
        ),
        Row(
            "a column that tells of changes in a query that shows none",
            write="""
                from penstock.transforms.sql import SqlTransform

                goals = p | beam.Create([beam.Row(team="red", points=3)])
                {"goals": goals} | SqlTransform("SELECT team, Sys.Undo FROM goals")
                """,
            see="""
                penstock.sql.errors.SqlError: Sys.Undo tells of changes, and a query without STREAM shows none
                  line 1, column 18 of the query
                    SELECT team, Sys.Undo FROM goals
                                     ^
                  at step 'SqlTransform(SELECT team, Sys.Undo FROM goals)' (game.py:4)
                  hint: write SELECT STREAM
                """,
        ),
        Row(
            "an empty query",
            write="""
                from penstock.transforms.sql import SqlTransform

                p | beam.Create([beam.Row(team="red")]) | SqlTransform("")
                """,
            see="""
                penstock.sql.errors.SqlError: there is no query
                  at step 'SqlTransform()' (game.py:3)
                  hint: pass one SELECT
                """,
        ),
        Row(
            "a statement that is not a query",
            write="""
                from penstock.transforms.sql import SqlTransform

                p | beam.Create([beam.Row(team="red")]) | SqlTransform("DROP TABLE PCOLLECTION")
                """,
            see="""
                penstock.sql.errors.SqlError: this is DROP, not a query
                  line 1, column 12 of the query
                    DROP TABLE PCOLLECTION
                               ^
                  at step 'SqlTransform(DROP TABLE PCOLLECTION)' (game.py:3)
                  hint: write SELECT
                """,
        ),
        Row(
            "a function that does not exist",
            write="""
                from penstock.transforms.sql import SqlTransform

                p | beam.Create([beam.Row(team="red")]) | SqlTransform("SELECT UPER(team) AS team FROM PCOLLECTION")
                """,
            see="""
                penstock.sql.errors.SqlError: unknown function UPER
                  line 1, column 8 of the query
                    SELECT UPER(team) AS team FROM PCOLLECTION
                           ^
                  at step 'SqlTransform(SELECT UPER(team) AS team FROM PCOLLECTION)' (game.py:3)
                  hint: did you mean UPPER?
                """,
        ),
        Row(
            "a sum of texts",
            write="""
                from penstock.transforms.sql import SqlTransform

                p | beam.Create([beam.Row(team="red")]) | SqlTransform("SELECT SUM(team) AS total FROM PCOLLECTION")
                """,
            see="""
                penstock.sql.errors.SqlError: SUM takes numbers, and team is STRING NOT NULL
                  line 1, column 8 of the query
                    SELECT SUM(team) AS total FROM PCOLLECTION
                           ^
                  at step 'SqlTransform(SELECT SUM(team) AS total FROM PCOLLECTION)' (game.py:3)
                  hint: CAST it to a number
                """,
        ),
        Row(
            "a column that is not grouped",
            write="""
                from penstock.transforms.sql import SqlTransform

                query = "SELECT team, points FROM PCOLLECTION GROUP BY team"
                p | beam.Create([beam.Row(team="red", points=3)]) | SqlTransform(query)
                """,
            see="""
                penstock.sql.errors.SqlError: the column 'points' is neither a key of the grouping nor aggregated
                  line 1, column 14 of the query
                    SELECT team, points FROM PCOLLECTION GROUP BY team
                                 ^
                  at step 'SqlTransform(SELECT team, points FROM PCOLLECTION GROUP BY team)' (game.py:4)
                  hint: add it to GROUP BY, or write MAX(points)
                """,
        ),
        Row(
            "a join without an equality",
            write="""
                from penstock.transforms.sql import SqlTransform

                rows = p | beam.Create([beam.Row(points=3)])
                query = "SELECT a.points FROM rows a JOIN rows b ON a.points < b.points"
                {"rows": rows} | SqlTransform(query)
                """,
            see="""
                penstock.sql.errors.SqlError: INNER JOIN needs an equality between its tables
                  line 1, column 34 of the query
                    SELECT a.points FROM rows a JOIN rows b ON a.points < b.points
                                                     ^
                  at step 'SqlTransform(SELECT a.points FROM rows a JOIN rows b ON a.points < b.p...)' (game.py:5)
                  hint: name an equality, or write CROSS JOIN and a condition in WHERE
                """,
        ),
        Row(
            "a window function in WHERE",
            write="""
                from penstock.transforms.sql import SqlTransform

                query = "SELECT points FROM PCOLLECTION WHERE RANK() OVER (ORDER BY points) <= 3"
                p | beam.Create([beam.Row(points=3)]) | SqlTransform(query)
                """,
            see="""
                penstock.sql.errors.SqlError: RANK() OVER stands where rows are not complete yet
                  line 1, column 38 of the query
                    SELECT points FROM PCOLLECTION WHERE RANK() OVER (ORDER BY points) <= 3
                                                         ^
                  at step 'SqlTransform(SELECT points FROM PCOLLECTION WHERE RANK() OVER (ORDER B...)' (game.py:4)
                  hint: write it in SELECT or QUALIFY, or in a query inside this one
                """,
        ),
        Row(
            "a frame of a window function that ends before it starts",
            write="""
                from penstock.transforms.sql import SqlTransform

                frame = "ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING"
                query = f"SELECT SUM(points) OVER (ORDER BY points {frame}) AS total FROM PCOLLECTION"
                p | beam.Create([beam.Row(points=3)]) | SqlTransform(query)
                """,
            see="""
                penstock.sql.errors.SqlError: the frame of SUM starts after its end
                  line 1, column 8 of the query
                    SELECT SUM(points) OVER (ORDER BY points ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDIN...
                           ^
                  at step 'SqlTransform(SELECT SUM(points) OVER (ORDER BY points ROWS BETWEEN 1 F...)' (game.py:5)
                  hint: write the earlier bound first
                """,
        ),
        Row(
            "a query over elements that are not rows",
            write="""
                from penstock.transforms.sql import SqlTransform

                p | beam.Create([1]) | SqlTransform("SELECT * FROM PCOLLECTION")
                """,
            see="""
                TypeError: the elements of 'PCOLLECTION' are <class 'int'>, and a query reads rows
                  at step 'SqlTransform(SELECT * FROM PCOLLECTION)' (game.py:3)
                  hint: make rows with Select(...), or declare their class with .with_output_types(...)
                """,
        ),
        Row(
            "a unit of time as other databases write it",
            write="""
                from penstock.transforms.sql import SqlTransform

                goals = p | beam.Create([beam.Row(team="red", points=3)])
                {"goals": goals} | SqlTransform("SELECT DATEADD(DAY, 1, DATE '2026-01-31') AS d FROM goals")
                """,
            see="""
                penstock.sql.errors.SqlError: DATEADD with a unit of time is not supported
                  line 1, column 8 of the query
                    SELECT DATEADD(DAY, 1, DATE '2026-01-31') AS d FROM goals
                           ^
                  at step "SqlTransform(SELECT DATEADD(DAY, 1, DATE '2026-01-31') AS d FROM goals)" (game.py:4)
                  hint: write time + INTERVAL '1' DAY, or DATE_ADD(day, 1)
                """,
        ),
        Row(
            "a COUNT of several columns",
            write="""
                from penstock.transforms.sql import SqlTransform

                goals = p | beam.Create([beam.Row(team="red", points=3)])
                {"goals": goals} | SqlTransform("SELECT COUNT(DISTINCT team, points) AS n FROM goals")
                """,
            see="""
                penstock.sql.errors.SqlError: COUNT takes one argument, not 2
                  line 1, column 8 of the query
                    SELECT COUNT(DISTINCT team, points) AS n FROM goals
                           ^
                  at step 'SqlTransform(SELECT COUNT(DISTINCT team, points) AS n FROM goals)' (game.py:4)
                  hint: write COUNT(*) over SELECT DISTINCT a, b … WHERE a IS NOT NULL AND b IS NOT NULL
                """,
        ),
        Row(
            "a length of time in months",
            write="""
                from penstock.transforms.sql import SqlTransform

                goals = p | beam.Create([beam.Row(team="red", points=3)])
                {"goals": goals} | SqlTransform("SELECT INTERVAL '1 month 2 days' AS i FROM goals")
                """,
            see="""
                penstock.sql.errors.SqlError: a length of time belongs here
                  line 1, column 17 of the query
                    SELECT INTERVAL '1 month 2 days' AS i FROM goals
                                    ^
                  at step "SqlTransform(SELECT INTERVAL '1 month 2 days' AS i FROM goals)" (game.py:4)
                  hint: write INTERVAL '10' MINUTES; months have no fixed length
                """,
        ),
    ),
)
