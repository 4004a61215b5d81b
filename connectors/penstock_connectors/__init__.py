"""The connectors that come with penstock, each found by its entry points as a stranger's are.

They use the SDK, their own packages, and of the runner only `penstock_spark.connecting`. None of them imports another.
"""
