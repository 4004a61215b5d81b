"""Results that stay as they are."""
