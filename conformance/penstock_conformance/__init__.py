"""The conformance suite: what the model promises, as transcripts that people read and harnesses play.

A transcript says what arrives at a grouping, and which panes come out and when. The format is described in
``transcripts/FORMAT.md``; `parsing` reads it, `bare` plays it on the machines of the model, without an engine.

    python -m penstock_conformance
"""
