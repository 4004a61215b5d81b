"""Plans as values, and what is known of the columns, windows and retractions in them."""
