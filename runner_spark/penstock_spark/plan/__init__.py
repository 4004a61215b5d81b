"""Plans as values, and facts about the columns, windows and retractions in them."""
