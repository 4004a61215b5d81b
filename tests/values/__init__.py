"""Values of each kind at each border."""
