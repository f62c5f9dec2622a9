"""Actuators between motors and joints: rigid drives, series elastic and variable stiffness ones."""
