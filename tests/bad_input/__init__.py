"""Programs with something wrong or unusual in them, and what each shows."""
