"""The interface of the runner for connectors: they may use the names in these modules, and nothing else of the runner.

A connector is a package of its own that reads or writes a system which the runner does not know. It declares a
description, which derives from `penstock.graph.Source` or `penstock.graph.Sink`, and a `formats.Format` that says how
the runner opens, reads and writes it. The metadata of its package names both::

    [project.entry-points."penstock.connectors"]
    "games.scores.ScoreSource" = "games.connector:SCORES"

`formats` has what an entry point names. `reading` is for sources, `writing` for sinks, `tables` for sinks of tables to
which streams commit, and `files` for formats of files. `values` takes values from Python to Arrow and Spark and back,
and `running` has what code on the driver and in tasks needs to fail, to wait and to report.
"""
