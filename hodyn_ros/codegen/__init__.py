"""Source code of the inverse dynamics of one robot, for real-time controllers in C and C++."""

from hodyn_ros.codegen.generate import generate_code
from hodyn_ros.codegen.statements import identifier

__all__ = ['generate_code', 'identifier']
