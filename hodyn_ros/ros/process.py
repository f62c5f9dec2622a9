"""A process that runs one node: from rclpy.init to an exit code."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

import rclpy
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
from rclpy.node import Node


def run(make_node: Callable[[], Node], args: Sequence[str] | None, threads: int) -> int:
    """Spin a node until the process is interrupted.

    Parameters
    ----------
    make_node : callable
        Makes the node once rclpy is initialised.
    args : sequence of str, optional
        Command line; by default that of the process.
    threads : int
        Threads that run callbacks.

    Returns
    -------
    int
        Exit code: 0 after SIGINT or SIGTERM, at whatever moment they come; 1 if the node cannot
        start, which is logged.
    """
    node = executor = None
    try:
        rclpy.init(args=args)
        try:
            node = make_node()
        except Exception as error:  # parameters out of range or of a wrong type: many classes
            if not rclpy.ok():
                return 0  # interrupted while starting
            rclpy.logging.get_logger('hodyn_ros').fatal(f'The node cannot start: {error}')
            return 1
        executor = MultiThreadedExecutor(num_threads=threads)
        executor.add_node(node)
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        # A Ctrl-C reaches the process twice under ros2 launch: the second one must not cut the
        # clean-up short.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if executor is not None:
            executor.shutdown()
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
    return 0
