"""The language of queries, as sqlglot parses it, and what of it is refused."""
