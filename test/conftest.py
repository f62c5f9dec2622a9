"""What holds for all tests, set before any of their modules is imported."""

import os
import signal

import pytest

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
ros/test_node.py                     engine/test_engine_results.py
ros/test_faults_overload.py          retiming/test_retiming.py
ros/test_soak.py                     cli/test_cli_motion.py
ros/test_planning_process.py         codegen/test_generate.py
ros/test_flatness_guard.py           trajectory/test_estimator.py
ros/test_faults_garbage.py           control/test_control.py
datasets/test_kill.py                project/test_doc.py
benchmarking/test_benchmark_latency.py retiming/test_scaling.py
ros/test_stream.py                   benchmarking/test_benchmarks.py
ros/test_node_warm_up.py             dynamics/test_inverse_dynamics.py
ros/test_motor_reference.py          engine/test_engine_cache.py
ros/test_newest.py                   dynamics/test_formulation_matrix.py
ros/test_flatness_controller.py      kinematics/test_inverse_kinematics.py
datasets/test_process.py             project/test_doc_reference.py
ros/test_time.py                     engine/test_fork.py
simulation/test_imperfections.py     control/test_tracking.py
"""


# Nodes and processes wait for each other, on a busy machine for too long now and then: in these
# folders what fails runs once more, as in the buildfarm of ROS, and is listed if it needed that.
# What fails anywhere else is a finding.
SECOND_TRY = ('ros', 'datasets')


def pytest_collection_modifyitems(config, items):
    """Sort by files, the long ones first; within a file, and among the others, nothing moves."""
    for item in items:
        if item.path.parent.name in SECOND_TRY:
            item.add_marker(pytest.mark.flaky(reruns=1))
    place = {name: number for number, name in enumerate(LONG.split())}
    items.sort(key=lambda item: place.get('/'.join(item.path.parts[-2:]), len(place)))
