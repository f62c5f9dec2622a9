"""What several tests need: oracles, robots, nodes under test, faults, files."""
