"""Values that the rest of the SDK is written with: moments, lengths of time and windowed values."""
