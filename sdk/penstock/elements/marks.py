"""Marks of a pipeline's values, by which type hints know whether they have elements."""


class WithElements:
    """A base of `penstock.pvalue.PCollection`: the parameter of its hint is the hint of its elements."""


class WithoutElements:
    """A base of pipelines and of their begin and end: a hint for them does not describe elements."""
