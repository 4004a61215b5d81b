"""Tasks of sources: elements get their event times, and the watermark its summaries."""
