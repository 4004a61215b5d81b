"""Parts that formats share in writing: planned sinks, files and their names, records as rows and as text."""
