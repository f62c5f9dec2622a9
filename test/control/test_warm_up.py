"""After `warm_up` nothing is compiled any more, whatever the law and the drives."""

import pytest
from support.engine_cases import needs_compiler
from support.processes import run_python

CODE = """
import sys

import numpy as np
from hodyn_ros import RobotModel
from hodyn_ros import control
from hodyn_ros.actuators import (
    Actuators, CubicSpring, Qbmove, RigidDrive, SeriesElastic, TableSpring, VariableStiffness
)
from hodyn_ros.control import kernels, warm_up
from hodyn_ros.control.laws import CONTROLLERS
from hodyn_ros.engine.engine import Engine

model = RobotModel.from_urdf('two_link')
deflections = np.linspace(-0.5, 0.5, 11)
DRIVES = {
    'linear': SeriesElastic(3000.0, 0.1),
    'cubic': SeriesElastic(CubicSpring(3000.0, 1e3), 0.1),
    'table': SeriesElastic(TableSpring(deflections, 3000.0 * deflections), 0.1),
    'damped': SeriesElastic(3000.0, 0.1, damping=0.1),
    'variable': VariableStiffness(Qbmove(6.0, 20.0), 0.2),
}
T, q = 1e-3, np.array([0.3, -0.4])
options = {'bandwidth': 20.0, 'torque_limits': 100.0}
made, prepare = [], Engine.prepare
Engine.prepare = lambda self, request: made.append(request) or prepare(self, request)
warm_up(model)
compiled = [f for f in vars(kernels).values() if hasattr(f, 'signatures')]
before = [len(f.signatures) for f in compiled]


def laws(drive):
    actuators = Actuators(model, {'shoulder': drive, 'elbow': RigidDrive(0.1)})
    yield control.TrackingController(actuators, T, delay=2 * T, **options)
    if not isinstance(drive, VariableStiffness):
        yield control.JointImpedance(actuators, T, stiffness=10.0, **options)
        yield control.GravityCompensation(actuators, T, **options)
    if type(drive) is SeriesElastic and not drive.damping:
        for kind in CONTROLLERS:
            yield control.make_controller(model, kind, actuators, 20.0)


for drive in map(DRIVES.get, sys.argv[1:]):
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

        made.clear()
        model.warm_up(0, answer)  # which compiles at once what is asked for
        late = [item for item in made if type(item).__name__ != 'Efforts' or item.order]
        assert not late, (type(law).__name__, drive, late)
assert [len(f.signatures) for f in compiled] == before, [f.signatures for f in compiled]
print('warm')
"""


@needs_compiler
@pytest.mark.parametrize(
    'drives',
    [
        ('linear', 'variable'),
        ('cubic', 'table', 'damped'),
    ],
)
def test_no_law_compiles_anything_after_a_warm_up(drives):
    assert run_python(CODE, *drives, timeout=600.0)[0].split() == ['warm']
