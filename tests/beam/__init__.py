"""Groupings of penstock against those of Apache Beam."""
