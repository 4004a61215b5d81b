"""The hosts of groupings in a batch, and the folds that tasks of a stream make before they send elements on."""
