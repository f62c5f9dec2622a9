"""A process that runs one node: from rclpy.init to an exit code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions


def run(make_node: Callable[[], Node], args: Sequence[str] | None) -> int:
    """Spin a node until the process is interrupted.

    Parameters
    ----------
    make_node : callable
        Makes the node once rclpy is initialised.
    args : sequence of str, optional
        Command line; by default that of the process.

    Returns
    -------
    int
        Exit code: 0 after SIGINT or SIGTERM, at whatever moment and however often they come; 1 if
        the node cannot start or a callback fails, which is logged.
    """
    stop = threading.Event()
    # The handlers of rclpy invalidate everything under the feet of running callbacks. These only
    # ask for the end, so that it happens in order.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    logger = rclpy.logging.get_logger('hodyn_ros')
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        node = make_node()
    except Exception as error:  # a bad command line, parameters out of range: many classes
        logger.fatal(f'The node cannot start: {error}')
        rclpy.try_shutdown()
        return 1
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    failures: list[Exception] = []

    def spin() -> None:
        try:
            executor.spin()
        except ExternalShutdownException:
            pass
        except Exception as error:
            # An executor that is shut down before it has begun to spin fails on its own handles.
            if not stop.is_set():
                logger.fatal(f'The node ends after a failure: {error!r}')
                failures.append(error)
        stop.set()

    spinning = threading.Thread(target=spin)
    spinning.start()
    stop.wait()
    executor.shutdown()
    spinning.join()
    node.destroy_node()
    rclpy.try_shutdown()
    # While Python ends, it would take its own handlers back.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    return 1 if failures else 0
