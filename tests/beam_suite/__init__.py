"""All of Beam's own tests, run on penstock."""
