"""The ground floor: errors aside, what everything else may use, and what uses nothing of penstock but that."""
