"""Drawings of programs: the steps, and the text and colours that all drawings share."""
