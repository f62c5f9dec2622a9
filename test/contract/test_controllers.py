"""Controllers of ros2_control in C++: compiled without a warning, with stand-ins for ROS, and run.

What they do is checked in C++: states, stops, references, gaps, allocations (`test/controllers`).
"""

import numpy as np
import pytest
from support.compilers import C_COMPILERS, CPP_COMPILERS, run
from support.plugins import HERE, KILTED, PACKAGE, run_plugin

from hodyn_ros import RobotModel, generate_code
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import tracking_controller

pytestmark = pytest.mark.skipif(
    not (C_COMPILERS and CPP_COMPILERS), reason='there are no C and C++ compilers'
)


@pytest.mark.parametrize(
    'sources',
    [
        (PACKAGE / 'src' / 'effort_controller.cpp', HERE / 'effort_plugin.cpp'),
        (HERE / 'tracking_plugin.cpp',),
    ],
    ids=['EffortController', 'TrackingController'],
)
def test_plugin_lives_through_all_states(sources, tmp_path):
    assert run_plugin(tmp_path, KILTED, *sources, flags=()) == 'correct\n'


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
def test_generated_package_moves_a_robot_as_its_law_says(tmp_path):
    model = RobotModel.from_urdf('two_link')
    springs = {name: SeriesElastic(1000.0, 0.5) for name in model.joint_names}
    options = {'torque_limits': [80.0, 40.0], 'delay': 1e-3}
    law = tracking_controller(Actuators(model, springs), 1e-3, **options)
    generate_code(model, tmp_path, name='robot', controller=law, ros2_control=True)
    kernel, library = tmp_path / 'kernel', tmp_path / 'law.o'
    run(C_COMPILERS[0], '-O1', '-c', kernel / 'robot_dynamics.c', '-o', library)
    q = np.array([0.4, -0.7])
    sources = tmp_path / 'src' / 'plugin.cpp', HERE / 'generated_plugin.cpp', library
    places = ' '.join(map(repr, map(float, [*q, *law.resting(q)])))
    said = run_plugin(tmp_path, KILTED, *sources, include=(kernel,), given=places, flags=())
    largest, error, reason = map(float, said.split())
    assert largest > 1.0
    assert error == 0.0
    assert reason == 0
