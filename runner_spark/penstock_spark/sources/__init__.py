"""What formats share in reading: open sources and the types of their elements; bounded ones staged for streams."""
