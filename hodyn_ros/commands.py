"""The commands: the command line, and the nodes.

What they need takes a second or more to import, and an interrupt may come meanwhile: signals
are met before. So little but the standard library is imported here.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from importlib import import_module

from hodyn_ros.interrupts import end_at_interrupts
from hodyn_ros.planning_start import start_early


def _command(module: str, node: str, plans: bool = False) -> Callable[[], int]:
    """Entry point of a node: its class is imported after signals are met.

    Parameters
    ----------
    module : str
        Module of `hodyn_ros.ros.nodes`.
    node : str
        Class in it.
    plans : bool
        Whether it has a planning process, which is started at the same time.

    Returns
    -------
    callable
        Runs the node and returns its exit code.
    """

    def main() -> int:
        for number in (signal.SIGINT, signal.SIGTERM):
            # Nothing has begun that has to end.
            signal.signal(number, lambda *_: os._exit(0))
        if plans:
            start_early()
        run = import_module('hodyn_ros.ros.base.life').main
        code: int = run(getattr(import_module(f'hodyn_ros.ros.nodes.{module}'), node))
        return code

    return main


def hodyn() -> None:
    """Run the command line and exit."""
    end_at_interrupts()
    # Matrices of robots are small: threads of BLAS take sixty times the processor's time of one.
    os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
    import_module('hodyn_ros.cli.main').main()


flatness_controller: Callable[[], int] = _command(
    'flatness_controller', 'FlatnessControllerNode', True
)
hodyn_node: Callable[[], int] = _command('hodyn_node', 'HodynNode', True)
reference_publisher: Callable[[], int] = _command(
    'reference_publisher', 'ReferencePublisher'
)
simulated_robot: Callable[[], int] = _command('simulated_robot', 'SimulatedRobot')
trajectory_proxy: Callable[[], int] = _command('trajectory_proxy', 'TrajectoryProxy')
