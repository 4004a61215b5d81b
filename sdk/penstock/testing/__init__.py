"""What pipeline authors test pipelines with."""
