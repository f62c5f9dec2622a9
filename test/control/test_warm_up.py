"""After `warm_up` nothing is compiled any more, whatever the law and the drives."""

from support.engine_cases import needs_compiler
from support.processes import run_python

CODE = """
import sys
from pathlib import Path

import numpy as np
from hodyn_ros import RobotModel, control
from hodyn_ros.actuators import (
    Actuators, CubicSpring, Qbmove, RigidDrive, SeriesElastic, TableSpring, VariableStiffness
)

model = RobotModel.from_urdf('two_link')
deflections = np.linspace(-0.5, 0.5, 11)
DRIVES = [
    SeriesElastic(3000.0, 0.1),
    SeriesElastic(CubicSpring(3000.0, 1e3), 0.1),
    SeriesElastic(TableSpring(deflections, 3000.0 * deflections), 0.1),
    SeriesElastic(3000.0, 0.1, damping=0.1),
    VariableStiffness(Qbmove(6.0, 20.0), 0.2),
]
T, q = 1e-3, np.array([0.3, -0.4])
options = {'bandwidth': 20.0, 'torque_limits': 100.0}


def laws(drive):
    actuators = Actuators(model, {'shoulder': drive, 'elbow': RigidDrive(0.1)})
    yield control.TrackingController(actuators, T, delay=2 * T, **options)
    if not isinstance(drive, VariableStiffness):
        yield control.JointImpedance(actuators, T, stiffness=10.0, **options)
        yield control.GravityCompensation(actuators, T, **options)
    if type(drive) is SeriesElastic and not drive.damping:
        gains = control.motor_gains(model, actuators, 20.0, q)
        yield control.FeedForwardController(model, actuators, gains)
        yield control.FlatnessController(model, actuators, 20.0)


def compiled():
    return {path for path in Path(sys.argv[1]).rglob('*') if path.is_file()}


control.warm_up(model)
before = compiled()
for drive in DRIVES:
    is_variable = isinstance(drive, VariableStiffness)
    stiffness = {'shoulder': np.array([600.0, 0.0, 0.0])} if is_variable else None
    for law in laws(drive):
        desired = np.zeros((5, 2))
        desired[0] = q
        # As given by a caller, who may not have it changed.
        desired.flags.writeable = False
        theta = law.resting(q, stiffness) if law.estimates else q

        def answer():
            for _ in range(5):
                law.evaluate(desired, q, 0.0 * q, theta, 0.0 * theta, stiffness=stiffness)

        model.warm_up(0, answer)  # which compiles at once what is asked for
print(len(before), *(path.name for path in compiled() - before))
"""


@needs_compiler
def test_no_law_compiles_anything_after_a_warm_up(tmp_path):
    """What is compiled lies in the cache, which is empty at first."""
    count, *later = run_python(CODE, str(tmp_path), NUMBA_CACHE_DIR=str(tmp_path))[
        0
    ].split()
    assert int(count) > 0
    assert not later
