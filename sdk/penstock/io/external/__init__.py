"""What Beam takes from its Java SDK and penstock has itself."""
