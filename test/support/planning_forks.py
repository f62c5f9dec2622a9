"""Planning processes that need not import anything: forks of a process that has.

The nodes that tests make in their own process start one each. What a planning process does once it
has its pipes is the same, but tests of the process itself have it started as users do.
"""

import atexit
import contextlib
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace

_SERVER = (
    'import sys; sys.path[:] = sys.argv[1:]; '
    'from support.planning_forks import serve; serve()'
)
_LARGEST = 2**20
_lock = threading.Lock()
_server = None  # of the process that has started it


def _connection():
    global _server
    if _server is None or _server[0] != os.getpid():
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server = subprocess.Popen([sys.executable, '-c', _SERVER, *sys.path], stdin=theirs)
        theirs.close()
        _server = os.getpid(), ours
        atexit.register(_end, server, *_server)
    return _server[1]


def _end(server, owner, connection):
    if owner == os.getpid():
        connection.close()
        server.wait()


class ForkedPlanning:
    """What a node asks of the `subprocess.Popen` of its planning process."""

    def __init__(self, command, **_):
        inbox, to_inbox = os.pipe()
        from_outbox, outbox = os.pipe()
        self._status, status = os.pipe()
        with _lock:
            state = pickle.dumps((dict(os.environ), os.getcwd()))
            socket.send_fds(_connection(), [state], [inbox, outbox, 2, status])
        for number in (inbox, outbox, status):
            os.close(number)
        self.stdin, self.stdout = os.fdopen(to_inbox, 'wb'), os.fdopen(from_outbox, 'rb')
        self.args, self.returncode = command, None
        self.pid = int(b''.join(iter(lambda: os.read(self._status, 1).strip(), b'')))

    def __del__(self):
        os.close(self._status)

    def wait(self, timeout=None):
        """Exit code, once the process has ended."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            with _lock:
                if self.returncode is None:  # no other thread was here first
                    self.returncode = int(os.read(self._status, 20) or -signal.SIGKILL)
        return self.returncode

    def send_signal(self, number):
        """Send a signal, unless the process has ended."""
        if self.returncode is None:
            # It may have ended, and the server says so.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self):
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self):
        """End the process."""
        self.send_signal(signal.SIGKILL)


def _become_planning(state, fds):
    """What the command of a node does before it imports the planning, and its work."""
    from hodyn_ros.ros.planner import process

    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, fd in enumerate(fds[:3]):
        os.dup2(fd, number)
    os.closerange(3, 256)
    os.nice(5)
    environment, folder = pickle.loads(state)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.stdin = os.fdopen(0)
    process.serve()


def serve():
    """Fork when asked to, and say how forks have ended, until nobody can ask any more."""
    import hodyn_ros.ros.planner.process  # noqa: F401

    connection = socket.socket(fileno=os.dup(0))
    ended, wake_up = os.pipe()
    os.set_blocking(wake_up, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_up, warn_on_full_buffer=False)
    statuses = {}
    while True:
        ready, _, _ = select.select([connection, ended], [], [])
        if ended in ready:
            os.read(ended, 4096)
            for pid in list(statuses):
                found, how = os.waitpid(pid, os.WNOHANG)
                if found:
                    status = statuses.pop(pid)
                    os.write(status, b'%d' % os.waitstatus_to_exitcode(how))
                    os.close(status)
        if connection in ready:
            state, fds, _, _ = socket.recv_fds(connection, _LARGEST, 4)
            if not state:
                return
            pid = os.fork()
            if not pid:
                try:
                    _become_planning(state, fds)
                finally:
                    os._exit(1)
            statuses[pid] = fds[3]
            os.write(fds[3], b'%d\n' % pid)
            for fd in fds[:3]:
                os.close(fd)


SUBPROCESS = SimpleNamespace(
    Popen=ForkedPlanning, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired
)
"""What takes the place of `subprocess` in `hodyn_ros.planning_start`."""
