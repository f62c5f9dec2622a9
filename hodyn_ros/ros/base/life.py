"""Start and end of a process with one node, and the memory of its middleware."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from hodyn_ros.resources import share_file
from hodyn_ros.ros.base.executor import ExecutorError, StreamExecutor
from hodyn_ros.ros.base.node import LOG_PERIOD

_SWITCH_INTERVAL = 0.5e-3  # s
_LONGEST_WAIT = 0.1  # s, until it is seen that the process is to end
_PAUSE = (
    0.01  # s, after a failure, so that one that lasts does not take the whole processor
)
_MOST_KNOWN = 20  # failures whose traceback is not logged again
_ENDING_TIME = 3.0  # s, after which nobody waits for what a worker compiles

# What the user can have said of profiles of Fast DDS: variables, files found by name.
USE_PROFILES = 'RMW_FASTRTPS_USE_QOS_FROM_XML'
PROFILES_FILE = {  # by the name of the library: Fast DDS 3 (ROS 2 Kilted) and 2 (Jazzy)
    'libfastdds.so': 'FASTDDS_DEFAULT_PROFILES_FILE',
    'libfastrtps.so': 'FASTRTPS_DEFAULT_PROFILES_FILE',
}
_CHOICES = (USE_PROFILES, 'RMW_FASTRTPS_PUBLICATION_MODE', *PROFILES_FILE.values())
_FILES = ('DEFAULT_FASTDDS_PROFILES.xml', 'DEFAULT_FASTRTPS_PROFILES.xml')
_LIBRARIES = Path('/proc/self/maps')


def bound_memory() -> bool:
    """Let Fast DDS keep no more memory than the messages that wait, if nobody has configured it.

    Version 3 also repeats lost messages sooner. To be called after `rclpy.init` and before the
    first node of the process; processes that are started later inherit the profile.

    Returns
    -------
    bool
        Whether the profile of this package is used: not with other middleware, nor where variables
        of the environment or files of profiles say otherwise.
    """
    if not rclpy.get_rmw_implementation_identifier().startswith('rmw_fastrtps'):
        return False
    if any(name in os.environ for name in _CHOICES) or any(map(os.path.exists, _FILES)):
        return False
    try:
        libraries = _LIBRARIES.read_text(encoding='utf-8', errors='replace')
    except OSError:  # no Linux
        return False
    for library, variable in PROFILES_FILE.items():
        if library in libraries:
            os.environ[variable] = str(share_file(f'config/{library[3:-3]}.xml'))
            os.environ[USE_PROFILES] = '1'
            return True
    return False


def main(make_node: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """Run a node until the process is interrupted.

    A callback that fails is logged and the node goes on; without its executor it would not. The
    end waits for what has been begun, but not for long.

    Parameters
    ----------
    make_node : callable
        Makes the node once rclpy is initialised.
    args : sequence of str, optional
        Arguments of rclpy, by default the command line.

    Returns
    -------
    int
        Exit code: 0 after SIGINT or SIGTERM, at whatever moment and however often they come; 1 if
        the node cannot start, or its executor fails again and again.
    """
    ends: list[int] = []
    # The handlers of rclpy invalidate everything under the feet of running callbacks. These only
    # ask for the end, so that it happens in order.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: ends.append(number))
    # While the worker compiles, the stream waits for the interpreter no longer than this.
    sys.setswitchinterval(_SWITCH_INTERVAL)
    logger = rclpy.logging.get_logger('hodyn_ros')
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        bound_memory()
        node = make_node()
        executor = StreamExecutor()
        executor.add_node(node)
    except Exception as error:  # a bad command line, parameters out of range: many classes
        logger.fatal(f'The node cannot start: {error}')
        rclpy.try_shutdown()
        return 1
    code, known = 0, set[str]()
    while rclpy.ok() and not ends:
        try:
            executor.spin_once(_LONGEST_WAIT)
        except ExternalShutdownException:
            break
        except ExecutorError as error:
            logger.fatal(f'The node ends: {error}')
            code = 1
            break
        except Exception as error:
            # Such as a request to one of rclpy's own services whose text is not UTF-8.
            names = (
                getattr(executor.latest, key, '') for key in ('topic_name', 'srv_name')
            )
            where = next(filter(None, names), '')
            what = f'{where}: {type(error).__name__}: {error}'.removeprefix(': ')
            more = 'It is the same again.' if what in known else traceback.format_exc()
            logger.error(
                f'A callback has failed ({what}); the node goes on. {more}',
                throttle_duration_sec=LOG_PERIOD,
            )
            known = known | {what} if len(known) < _MOST_KNOWN else {what}
            time.sleep(_PAUSE)
    executor.shutdown()
    ending = threading.Thread(target=node.destroy_node, name='end', daemon=True)
    ending.start()
    ending.join(_ENDING_TIME)
    if ending.is_alive():  # a compiler cannot be interrupted, and Python would wait for it
        logger.info('The node ends in the middle of what it was making ready.')
        sys.stdout.flush()
        os._exit(code)
    rclpy.try_shutdown()
    # While Python ends, it would take its own handlers back.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    return code
