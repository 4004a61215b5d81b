"""The conformance suite: what the model promises, as transcripts that people read and harnesses play.

A transcript says what arrives at a grouping, and which panes come out and when. The format is described in
``transcripts/FORMAT.md``; `parsing` reads it. There are two harnesses: `bare` plays transcripts on the machines of the
model, without an engine; `pipelines` makes a branch of a pipeline of each, and so a whole engine runs them.

    python -m penstock_conformance
    python -m penstock_conformance --spark --mode streaming
"""
