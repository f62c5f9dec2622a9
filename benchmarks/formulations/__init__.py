"""The formulations of inverse dynamics, compiled: what each of them costs.

The same robot, motion, sines and cosines go into the body-fixed, spatial, hybrid and closed-form
equations and into those of the engine. Each is recorded as a straight-line program by the engine's
recorder, which folds constants, drops zero and unit factors and shares equal terms for all of them
alike, and is compiled by the engine's back-end.
"""
