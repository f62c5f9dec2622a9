"""A process that runs one node: from rclpy.init to an exit code."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable, Sequence

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from hodyn_ros.ros.middleware import bound_memory

LOG_PERIOD = 1.0  # s
PAUSE = 0.01  # s, after a failure, so that one that lasts does not take the whole processor


def run(make_node: Callable[[], Node], args: Sequence[str] | None = None) -> int:
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
        the node cannot start. A callback that fails is logged and the node goes on.
    """
    stop = threading.Event()
    # The handlers of rclpy invalidate everything under the feet of running callbacks. These only
    # ask for the end, so that it happens in order.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    logger = rclpy.logging.get_logger('hodyn_ros')
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        bound_memory()
        node = make_node()
    except Exception as error:  # a bad command line, parameters out of range: many classes
        logger.fatal(f'The node cannot start: {error}')
        rclpy.try_shutdown()
        return 1
    executor = SingleThreadedExecutor()
    executor.add_node(node)

    def spin() -> None:
        while not stop.is_set():
            try:
                executor.spin()
            except ExternalShutdownException:
                break
            except Exception:
                # Such as a request to one of rclpy's own services whose text is not UTF-8. An
                # executor that is shut down before it has begun to spin fails on its own handles.
                if not stop.is_set():
                    logger.error(
                        f'A callback has failed; the node goes on.\n{traceback.format_exc()}',
                        throttle_duration_sec=LOG_PERIOD,
                    )
                    stop.wait(PAUSE)
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
    return 0
