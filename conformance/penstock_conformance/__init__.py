"""The conformance suite: what the model promises, as transcripts that people read and harnesses play.

A transcript says what arrives at a grouping, and which panes come out and when. The format is described in
``transcripts/FORMAT.md``; `parsing` reads it. There are two harnesses: `bare` plays transcripts on the machines of the
model, without an engine; `pipelines` makes a branch of a pipeline of each, and so a whole engine runs them.
`command` is what users run; `table` makes the page of all that is shown, and where.

    penstock conformance
    penstock conformance --engine bare --mode streaming --figure 7 2-11
"""
