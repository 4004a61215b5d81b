"""The conformance suite: what the model promises, as transcripts that people read and harnesses play.

A transcript says what arrives at a grouping, and which panes come out and when. ``transcripts/FORMAT.md`` describes the
format, and `parsing` reads it. There are two harnesses: `bare` plays transcripts on the machines of the model, without
an engine; `pipelines` makes a branch of a pipeline of each, and so runs them on a whole engine. `command` is the user's
command; `table` writes the page of results.

    penstock conformance
    penstock conformance --engine bare --mode streaming --figure 7 2-11
"""
