"""Drawings of what a program describes: its steps, and the text and colours that all drawings share."""
