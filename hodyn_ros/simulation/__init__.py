"""Simulation of robots with elastic joints on MuJoCo, which shares no code with this package."""
