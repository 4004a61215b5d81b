"""Bad input: sQL."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

_GOALS = """CREATE TABLE goals (team STRING, points BIGINT, at TIMESTAMP, WATERMARK FOR at AS at)
WITH (format = 'csv', path = 'goals', header = 'true');
CREATE TABLE totals (team STRING, total BIGINT) WITH (format = 'parquet', path = 'totals');
"""

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
                  hint: correct the query here
                """,
            on_spark=True,
        ),
        Row(
            "a column that describes changes in a query that does not show them",
            write="""
                from penstock.transforms.sql import SqlTransform

                goals = p | beam.Create([beam.Row(team="red", points=3)])
                {"goals": goals} | SqlTransform("SELECT team, Sys.Undo FROM goals")
                """,
            see="""
                penstock.sql.errors.SqlError: Sys.Undo describes changes, and a query without STREAM does not show them
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
            on_spark=True,
        ),
        Row(
            "a sum of booleans, in a stream",
            write="""
                from penstock.transforms.sql import SqlTransform

                p = beam.Pipeline(mode="streaming")
                rows = p | beam.Create([beam.Row(red=True)])
                rows | SqlTransform("SELECT SUM(red) AS total FROM PCOLLECTION")
                """,
            see="""
                penstock.sql.errors.SqlError: SUM takes numbers, and red is BOOLEAN NOT NULL
                  line 1, column 8 of the query
                    SELECT SUM(red) AS total FROM PCOLLECTION
                           ^
                  at step 'SqlTransform(SELECT SUM(red) AS total FROM PCOLLECTION)' (game.py:5)
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
            on_spark=True,
        ),
        Row(
            "a window function in WHERE, in a stream",
            write="""
                from penstock.transforms.sql import SqlTransform

                p = beam.Pipeline(mode="streaming")
                query = "SELECT points FROM PCOLLECTION WHERE RANK() OVER (ORDER BY points) <= 3"
                p | beam.Create([beam.Row(points=3)]) | SqlTransform(query)
                """,
            see="""
                penstock.sql.errors.SqlError: RANK() OVER is in a place where rows are not complete yet
                  line 1, column 38 of the query
                    SELECT points FROM PCOLLECTION WHERE RANK() OVER (ORDER BY points) <= 3
                                                         ^
                  at step 'SqlTransform(SELECT points FROM PCOLLECTION WHERE RANK() OVER (ORDER B...)' (game.py:5)
                  hint: write it in SELECT or QUALIFY, or in a query inside this one
                """,
        ),
        Row(
            "a frame of a window function that ends before it starts, in a stream",
            write="""
                from penstock.transforms.sql import SqlTransform

                p = beam.Pipeline(mode="streaming")
                frame = "ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING"
                query = f"SELECT SUM(points) OVER (ORDER BY points {frame}) AS total FROM PCOLLECTION"
                p | beam.Create([beam.Row(points=3)]) | SqlTransform(query)
                """,
            see="""
                penstock.sql.errors.SqlError: the frame of SUM starts after its end
                  line 1, column 8 of the query
                    SELECT SUM(points) OVER (ORDER BY points ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDIN...
                           ^
                  at step 'SqlTransform(SELECT SUM(points) OVER (ORDER BY points ROWS BETWEEN 1 F...)' (game.py:6)
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
            "an unknown time unit, in a stream",
            write="""
                from penstock.transforms.sql import SqlTransform

                p = beam.Pipeline(mode="streaming")
                goals = p | beam.Create([beam.Row(team="red", points=3)])
                {"goals": goals} | SqlTransform("SELECT DATEADD(DAYS, 1, DATE '2026-01-31') AS d FROM goals")
                """,
            see="""
                penstock.sql.errors.SqlError: unknown time unit 'DAYS'
                  line 1, column 8 of the query
                    SELECT DATEADD(DAYS, 1, DATE '2026-01-31') AS d FROM goals
                           ^
                  at step "SqlTransform(SELECT DATEADD(DAYS, 1, DATE '2026-01-31') AS d FROM goals)" (game.py:5)
                  hint: did you mean DAY?
                """,
        ),
        Row(
            "the first value of a group without an order, in a stream",
            write="""
                from penstock.transforms.sql import SqlTransform

                p = beam.Pipeline(mode="streaming")
                goals = p | beam.Create([beam.Row(team="red", points=3)])
                {"goals": goals} | SqlTransform("SELECT FIRST(team) AS t FROM goals")
                """,
            see="""
                penstock.sql.errors.SqlError: the aggregate FIRST is not supported
                  line 1, column 8 of the query
                    SELECT FIRST(team) AS t FROM goals
                           ^
                  at step 'SqlTransform(SELECT FIRST(team) AS t FROM goals)' (game.py:5)
                  hint: MIN_BY(x, time) is the first x and MAX_BY(x, time) the last, and ANY_VALUE(x) is any
                """,
        ),
        Row(
            "an interval of months, in a stream",
            write="""
                from penstock.transforms.sql import SqlTransform

                p = beam.Pipeline(mode="streaming")
                goals = p | beam.Create([beam.Row(team="red", points=3)])
                {"goals": goals} | SqlTransform("SELECT INTERVAL '1 month 2 days' AS i FROM goals")
                """,
            see="""
                penstock.sql.errors.SqlError: expected an interval here
                  line 1, column 17 of the query
                    SELECT INTERVAL '1 month 2 days' AS i FROM goals
                                    ^
                  at step "SqlTransform(SELECT INTERVAL '1 month 2 days' AS i FROM goals)" (game.py:5)
                  hint: write INTERVAL '10' MINUTES; months have no fixed length
                """,
        ),
        Row(
            "a generator of something that is not an array, in a stream",
            write="""
                from penstock.transforms.sql import SqlTransform

                p = beam.Pipeline(mode="streaming")
                posts = p | beam.Create([beam.Row(id=1, tags="a,b")])
                {"posts": posts} | SqlTransform("SELECT p.id, x.tag FROM posts AS p, UNNEST(p.tags) AS x(tag)")
                """,
            see="""
                penstock.sql.errors.SqlError: UNNEST takes arrays, not STRING
                  line 1, column 46 of the query
                    SELECT p.id, x.tag FROM posts AS p, UNNEST(p.tags) AS x(tag)
                                                                 ^
                  at step 'SqlTransform(SELECT p.id, x.tag FROM posts AS p, UNNEST(p.tags) AS x(tag))' (game.py:5)
                  hint: make one, such as SPLIT(text, ',') or ARRAY(a, b)
                """,
        ),
        Row(
            "more names than a generator makes columns, in a stream",
            write="""
                from penstock.transforms.sql import SqlTransform

                p = beam.Pipeline(mode="streaming")
                posts = p | beam.Create([beam.Row(id=1, tags="a,b")])
                {"posts": posts} | SqlTransform("SELECT EXPLODE(SPLIT(tags, ',')) AS (at, tag) FROM posts")
                """,
            see="""
                penstock.sql.errors.SqlError: EXPLODE makes 1 column, and the number of names is 2
                  line 1, column 8 of the query
                    SELECT EXPLODE(SPLIT(tags, ',')) AS (at, tag) FROM posts
                           ^
                  at step "SqlTransform(SELECT EXPLODE(SPLIT(tags, ',')) AS (at, tag) FROM posts)" (game.py:5)
                  hint: its columns in their order: col
                """,
        ),
        Row(
            "a generator inside an expression, in a stream",
            write="""
                from penstock.transforms.sql import SqlTransform

                p = beam.Pipeline(mode="streaming")
                posts = p | beam.Create([beam.Row(id=1, tags="a,b")])
                {"posts": posts} | SqlTransform("SELECT UPPER(EXPLODE(SPLIT(tags, ','))) AS tag FROM posts")
                """,
            see="""
                penstock.sql.errors.SqlError: EXPLODE makes rows, and is inside an expression
                  line 1, column 14 of the query
                    SELECT UPPER(EXPLODE(SPLIT(tags, ','))) AS tag FROM posts
                                 ^
                  at step "SqlTransform(SELECT UPPER(EXPLODE(SPLIT(tags, ','))) AS tag FROM posts)" (game.py:5)
                  hint: select it in a subquery of FROM, and name its column here
                """,
        ),
        Row(
            "two generators in a query that groups, in a stream",
            write="""
                from penstock.transforms.sql import SqlTransform

                p = beam.Pipeline(mode="streaming")
                posts = p | beam.Create([beam.Row(id=1, tag="a")])
                query = "SELECT EXPLODE(ARRAY_AGG(id)) AS id, EXPLODE(ARRAY_AGG(tag)) AS tag FROM posts"
                {"posts": posts} | SqlTransform(query)
                """,
            see="""
                penstock.sql.errors.SqlError: two generators are in a query that groups
                  line 1, column 38 of the query
                    SELECT EXPLODE(ARRAY_AGG(id)) AS id, EXPLODE(ARRAY_AGG(tag)) AS tag FROM posts
                                                         ^
                  at step 'SqlTransform(SELECT EXPLODE(ARRAY_AGG(id)) AS id, EXPLODE(ARRAY_AGG(ta...)' (game.py:6)
                  hint: group in a subquery of FROM
                """,
        ),
        Row(
            "a job in SQL whose second statement fails",
            write="""
                import os, sys
                from penstock_conformance.command import main

                sys.exit(main(["sql", os.path.abspath("job.sql")]))
                """,
            see="""
                there is no table 'gaols'
                  line 5, column 45 of /data/job.sql
                                       SELECT team, points FROM gaols
                                                                ^
                  hint: did you mean 'goals'?
                """,
            files={
                "job.sql": _GOALS
                + "INSERT INTO totals SELECT team, points FROM goals;\nINSERT INTO totals SELECT team, points FROM gaols;\n",
                "goals/1.csv": "team,points,at\nred,3,2026-01-01T12:00:00Z\n",
            },
        ),
        Row(
            "a table of SQL that the columns of the query do not fit",
            write="""
                import os, sys
                from penstock_conformance.command import main

                sys.exit(main(["sql", os.path.abspath("job.sql")]))
                """,
            see="""
                the column 'total' of the query is a STRING, and 'total' of the table 'totals' a BIGINT
                  line 4, column 13 of /data/job.sql
                    INSERT INTO totals SELECT team, team AS total FROM goals;
                                ^
                  hint: write CAST(total AS BIGINT) AS total
                """,
            files={
                "job.sql": _GOALS + "INSERT INTO totals SELECT team, team AS total FROM goals;\n",
                "goals/1.csv": "team,points,at\nred,3,2026-01-01T12:00:00Z\n",
            },
        ),
        Row(
            "columns of a query in a different order than those of the table",
            write="""
                import os, sys
                from penstock_conformance.command import main

                sys.exit(main(["sql", os.path.abspath("job.sql")]))
                """,
            see="""
                column 1 of the query is 'total', and would fill 'team' of 'totals'
                  line 4, column 13 of /data/job.sql
                    INSERT INTO totals SELECT points AS total, team FROM goals;
                                ^
                  hint: write INSERT INTO totals BY NAME, or give the columns the order of the table
                """,
            files={
                "job.sql": _GOALS + "INSERT INTO totals SELECT points AS total, team FROM goals;\n",
                "goals/1.csv": "team,points,at\nred,3,2026-01-01T12:00:00Z\n",
            },
        ),
        Row(
            "rows that change, in a table that only adds rows",
            write="""
                import os, sys
                from penstock_conformance.command import main

                sys.exit(main(["sql", os.path.abspath("job.sql")]))
                """,
            see="""
                the query changes rows that it has emitted, and the table 'totals' of parquet only adds rows
                  line 4, column 13 of /data/job.sql
                    INSERT INTO totals SELECT team, SUM(points) FROM goals GROUP BY team;
                                ^
                  hint: group by a window and write EMIT AFTER WATERMARK; or select a time and write EMIT WHEN WATERMARK PAST it; or write SELECT STREAM …, Sys.Undo; or write to a table of database, delta, iceberg or kafka with a PRIMARY KEY
                """,
            files={
                "job.sql": _GOALS + "INSERT INTO totals SELECT team, SUM(points) FROM goals GROUP BY team;\n",
                "goals/1.csv": "team,points,at\nred,3,2026-01-01T12:00:00Z\n",
            },
        ),
        Row(
            "a setting of a table that its connector does not have",
            write="""
                import os, sys
                from penstock_conformance.command import main

                sys.exit(main(["sql", os.path.abspath("job.sql")]))
                """,
            see="""
                the table 'scores' of csv has no setting 'headr'
                  line 4, column 74 of /data/job.sql
                    ...BLE scores (team STRING) WITH (format = 'csv', path = 'scores', headr = 'true');
                                                                                       ^
                  hint: did you mean 'header'?
                """,
            files={
                "job.sql": _GOALS
                + "CREATE TABLE scores (team STRING) WITH (format = 'csv', path = 'scores', headr = 'true');\n",
                "goals/1.csv": "team,points,at\nred,3,2026-01-01T12:00:00Z\n",
            },
        ),
        Row(
            "an unknown option of a job",
            write="""
                import os, sys
                from penstock_conformance.command import main

                sys.exit(main(["sql", os.path.abspath("job.sql")]))
                """,
            see="""
                there is no option 'shufle_partitions'
                  line 4, column 5 of /data/job.sql
                    SET shufle_partitions = 4;
                        ^
                  hint: did you mean shuffle_partitions?
                """,
            files={
                "job.sql": _GOALS + "SET shufle_partitions = 4;\n",
                "goals/1.csv": "team,points,at\nred,3,2026-01-01T12:00:00Z\n",
            },
        ),
        Row(
            "a function of a job in a missing module",
            write="""
                import os, sys
                from penstock_conformance.command import main

                sys.exit(main(["sql", os.path.abspath("job.sql")]))
                """,
            see="""
                there is no module 'scores'
                  line 4, column 26 of /data/job.sql
                    CREATE FUNCTION stars AS 'scores:stars';
                                             ^
                  hint: put scores.py beside the job, or install its package
                """,
            files={
                "job.sql": _GOALS + "CREATE FUNCTION stars AS 'scores:stars';\n",
                "goals/1.csv": "team,points,at\nred,3,2026-01-01T12:00:00Z\n",
            },
        ),
        Row(
            "a function of a job that raises",
            write="""
                import os, sys
                from penstock_conformance.command import main

                sys.exit(main(["sql", os.path.abspath("job.sql"), "--mode=batch"]))
                """,
            see="""
                the function HALF has raised LookupError: no half of 3
                  line 6, column 8 of /data/job.sql
                    SELECT HALF(points) AS half FROM goals
                           ^
                  in half (halving.py:2): return whole(n, 2)
                  in whole (halving.py:5): raise LookupError(f"no half of {n}")
                  hint: correct the function, or filter out such rows first; set show_elements_in_errors to see the row
                """,
            files={
                "job.sql": _GOALS
                + "CREATE FUNCTION half AS 'halving:half';\n\nSELECT HALF(points) AS half FROM goals;\n",
                "goals/1.csv": "team,points,at\nred,3,2026-01-01T12:00:00Z\n",
                "halving.py": "def half(n: int) -> int:\n    return whole(n, 2)\n\n"
                'def whole(n, m):\n    raise LookupError(f"no half of {n}")\n',
            },
            on_spark=True,
        ),
        Row(
            "a function of a job that is called with too many values",
            write="""
                import os, sys
                from penstock_conformance.command import main

                sys.exit(main(["sql", os.path.abspath("job.sql"), "--mode=batch"]))
                """,
            see="""
                the function STARS takes 1 argument, not 2
                  line 5, column 8 of /data/job.sql
                    SELECT STARS(points, 2) AS stars FROM goals
                           ^
                  hint: correct the call, or the function
                """,
            files={
                "job.sql": _GOALS
                + "CREATE FUNCTION stars AS 'shining:stars';\nSELECT STARS(points, 2) AS stars FROM goals;\n",
                "goals/1.csv": "team,points,at\nred,3,2026-01-01T12:00:00Z\n",
                "shining.py": "def stars(n: int) -> str:\n    return '*' * n\n",
            },
        ),
        Row(
            "a line of CSV that does not fit the table",
            write="""
                from pathlib import Path
                from penstock.sql.jobs.running import Job

                Job(Path("job.sql").read_text(), "job.sql").run()
                """,
            see="""
                penstock.error.RunnerError: line 3 of /data/goals/1.csv does not fit the columns: the field 'points' is not of type BIGINT
                  at step 'Insert totals/Query' (job.sql:5)
                  hint: correct the file or the columns; with the option mode='PERMISSIVE', Spark truncates such records or fills them
                """,
            files={
                "job.sql": _GOALS + "SET mode = batch;\nINSERT INTO totals SELECT team, points FROM goals;\n",
                "goals/1.csv": "team,points,at\nred,3,2026-01-01T12:00:00Z\nblue,x,2026-01-01T12:00:00Z\n",
            },
            on_spark=True,
        ),
    ),
)
