"""What follows from a motion and its efforts: energies, exceeded limits, other time laws."""
