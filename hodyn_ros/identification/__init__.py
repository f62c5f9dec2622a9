"""Parameters of a robot from recordings of it, motions that show them, and how well they fit."""

from hodyn_ros.identification.outputs import (
    actuator_config,
    described,
    fixed_parameters,
    friction_config,
    main_link,
    write_parameters,
)

__all__ = [
    'actuator_config', 'described', 'fixed_parameters', 'friction_config', 'main_link',
    'write_parameters',
]  # fmt: skip
