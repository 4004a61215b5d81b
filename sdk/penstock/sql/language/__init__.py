"""The language of queries, as sqlglot parses it, and the clauses that are refused."""
