"""Parameters of a robot from recordings of it, motions that show them, and how well they fit."""

from hodyn_ros.identification.online import OnlineEstimator, ParameterEstimate

__all__ = ['OnlineEstimator', 'ParameterEstimate']
