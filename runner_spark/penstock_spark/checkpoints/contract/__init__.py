"""Which state fits which pipeline: the signature of a plan, and its comparison with another."""
