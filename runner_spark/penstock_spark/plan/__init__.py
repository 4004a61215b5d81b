"""Plans as values, and what is known about the columns, windows and retractions in them."""
