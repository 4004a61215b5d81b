"""A module beside the main program, which the workers do not have."""


def shout(text: str) -> str:
    """The text in capitals."""
    return text.upper()
