"""What follows from a motion and its efforts: limits that are exceeded."""
