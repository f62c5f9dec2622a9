"""Writes the C code of one robot and its law into test/codegen/reference.

Reviewers see there what a change does to generated code; test_reference.py says when it is out of
date. Run it from the root of the project: python test/codegen/make_reference.py
"""

from pathlib import Path

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.codegen import generate_code
from hodyn_ros.control import tracking_controller

FOLDER = Path(__file__).parent / 'reference'
FILES = 'two_link_dynamics.c', 'two_link_dynamics.h'


def write(folder):
    """Write the code of a two-link arm on springs, with the tracking law, into a folder."""
    model = RobotModel.from_urdf('two_link')
    springs = {name: SeriesElastic(3000.0, 0.3) for name in model.joint_names}
    law = tracking_controller(Actuators(model, springs), 1e-3, delay=1e-3)
    generate_code(model, folder, controller=law, overwrite=True)


if __name__ == '__main__':
    write(FOLDER)
    for path in FOLDER.iterdir():
        if path.name not in FILES:
            path.unlink()
