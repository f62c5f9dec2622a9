"""What holds for all tests, set before any of their modules is imported."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Several test processes share the cores; threads of BLAS in each would wait for one another.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

# A shell that runs the tests in the background has them ignore Ctrl-C, and so all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Files of some ten seconds and more, the longest first. Those on the left mostly wait, for nodes
# and other processes, those on the right compute. Processes get files in their order: one waits
# while another computes, and none is left with a long file when the others have come to the end.
LONG = """
ros/test_faults_death.py             engine/test_engine.py
ros/test_node.py                     cli/test_cli_motion.py
ros/test_faults_overload.py          retiming/test_retiming.py
streams/test_control_plant.py        codegen/test_generate.py
ros/test_planning_process.py         trajectory/test_estimator.py
ros/test_motor_reference.py          control/test_tracking.py
ros/test_simulation_node.py          engine/test_engine_results.py
ros/test_faults_garbage.py           engine/test_engine_cache.py
ros/test_stream.py                   project/test_doc.py
ros/test_newest.py                   control/test_control.py
ros/test_node_warm_up.py             benchmarking/test_benchmarks.py
ros/test_flatness_controller.py      retiming/test_scaling.py
datasets/test_kill.py                kinematics/test_inverse_kinematics.py
datasets/test_process.py             dynamics/test_formulation_matrix.py
ros/test_soak.py                     engine/test_fork.py
ros/test_time.py                     simulation/test_imperfections.py
"""


# Nodes and processes wait for each other, on a busy machine for too long now and then: in these
# folders what fails runs once more, as in the buildfarm of ROS, and is listed if it needed that.
# What fails anywhere else is a finding.
SECOND_TRY = ('ros', 'datasets')


# How long an example takes is for no test to say: the machine may be busy. A short run has the
# same examples each time; a long one looks for what is not known yet.
COMMON = {'deadline': None, 'suppress_health_check': [HealthCheck.too_slow]}
settings.register_profile('short', max_examples=25, derandomize=True, **COMMON)
settings.register_profile('long', max_examples=300, print_blob=True, **COMMON)


def is_long(config):
    """Whether the long tests are asked for, as `make test-long` does."""
    return config.option.markexpr == 'slow'


def pytest_configure(config):
    settings.load_profile('long' if is_long(config) else 'short')


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Sort by files, the long ones first; within a file, and among the others, nothing moves.

    Tests of examples from hypothesis are long ones too: they try more of them then.
    """
    for item in items:
        if is_long(config) and getattr(item.obj, 'is_hypothesis_test', False):
            item.add_marker(pytest.mark.slow)
        if item.path.parent.name in SECOND_TRY:
            item.add_marker(pytest.mark.flaky(reruns=1))
    place = {name: number for number, name in enumerate(LONG.split())}
    items.sort(key=lambda item: place.get('/'.join(item.path.parts[-2:]), len(place)))
