"""Actuators between motors and joints: rigid drives, series elastic, variable stiffness."""
