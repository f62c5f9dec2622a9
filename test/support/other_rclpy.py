"""Rclpy as other releases have it: names renamed wherever it uses them, or tasks kept anew.

`environment` gives what a process needs to have such an rclpy, and so have those that it starts.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType

NAMES = 'HODYN_TEST_RCLPY_NAMES'
FORM = 'HODYN_TEST_RCLPY_FORM'
RENAMED = '{}_of_another_release'

# The form of tasks since PR 1469 of ros2/rclpy: Jazzy 7.1.9, Humble 3.3.21, Lyrical.
_EXECUTORS = (
    (
        "        self._tasks: List[Tuple[Task[Any], 'Optional[Entity]', Optional[Node]]] = []\n",
        '        self._pending_tasks = {}\n'
        '        from collections import deque\n'
        '        self._ready_tasks = deque()\n'
        '        self._is_spinning = False\n'
        '        self._is_spinning_lock = Lock()\n',
    ),
    (
        """        with self._tasks_lock:
            self._tasks.append((task, None, None))
            if self._guard:
                self._guard.trigger()
""",
        """        with self._tasks_lock:
            self._pending_tasks[task] = (None, None)
        self._call_task_in_next_spin(task)
""",
    ),
    (
        '    def shutdown(self, timeout_sec: Optional[float] = None) -> bool:\n',
        """    def _call_task_in_next_spin(self, task):
        with self._tasks_lock:
            self._ready_tasks.append(task)
            if self._guard:
                self._guard.trigger()

    def _enter_spin(self):
        with self._is_spinning_lock:
            if self._is_spinning:
                raise RuntimeError('Executor is already spinning')
            self._is_spinning = True

    def _exit_spin(self):
        with self._is_spinning_lock:
            self._is_spinning = False

    def shutdown(self, timeout_sec: Optional[float] = None) -> bool:
""",
    ),
    (
        """        while self._context.ok() and not self._is_shutdown:
            self.spin_once()
""",
        """        self._enter_spin()
        try:
            while self._context.ok() and not self._is_shutdown:
                self._spin_once_impl()
        finally:
            self._exit_spin()
""",
    ),
    (
        '            self._tasks.append((task, entity, node))\n',
        '            self._pending_tasks[task] = (entity, node)\n',
    ),
    (
        """            tasks = None
            with self._tasks_lock:
                tasks = list(self._tasks)
            if tasks:
                for task, entity, node in tasks:
                    if (not task.executing() and not task.done() and
                            (node is None or node in nodes_to_use)):
                        yielded_work = True
                        yield task, entity, node
                with self._tasks_lock:
                    # Get rid of any tasks that are done
                    self._tasks = list(filter(lambda t_e_n: not t_e_n[0].done(), self._tasks))
                    # Get rid of any tasks that are cancelled
                    self._tasks = list(filter(lambda t_e_n: not t_e_n[0].cancelled(), self._tasks))
""",
        """            with self._tasks_lock:
                for task in list(self._pending_tasks):
                    if task.done() or task.cancelled():
                        del self._pending_tasks[task]
                count = len(self._ready_tasks)
            for _ in range(count):
                task = self._ready_tasks.popleft()
                if task.done() or task.cancelled():
                    continue
                entity, node = self._pending_tasks[task]
                if node is None or node in nodes_to_use:
                    yielded_work = True
                    yield task, entity, node
                else:
                    with self._tasks_lock:
                        self._ready_tasks.append(task)
""",
    ),
    (
        """        self._spin_once_impl(timeout_sec)

    def _spin_once_until""",
        """        self._enter_spin()
        try:
            self._spin_once_impl(timeout_sec)
        finally:
            self._exit_spin()

    def _spin_once_until""",
    ),
)
_TASK = (
    (
        """        while self._pending():
            yield
        return self.result()
""",
        """        if self._pending():
            yield self
        if self._pending():
            raise RuntimeError('Future awaited a second time before it was done')
        return self.result()
""",
    ),
    (
        '                    handler.send(None)\n',
        """                    awaited = handler.send(None)
                    executor = self._executor()
                    if awaited is None:
                        executor._call_task_in_next_spin(self)
                    else:
                        other = awaited._executor()
                        if other is None:
                            awaited._set_executor(executor)
                        elif other is not executor:
                            raise RuntimeError('A task awaits a future of another executor')
                        awaited.add_done_callback(
                            lambda _: executor._call_task_in_next_spin(self)
                        )
""",
    ),
)
_REPLACED = {'rclpy.executors': _EXECUTORS, 'rclpy.task': _TASK}


def environment(
    folder: Path, names: tuple[str, ...] = (), is_newer: bool = False
) -> dict[str, str]:
    """Variables of a process whose rclpy is another one.

    Parameters
    ----------
    folder : Path
        Where the module is put that Python imports first.
    names : tuple of str
        What rclpy calls otherwise.
    is_newer : bool
        Whether tasks are kept as newer releases do.
    """
    (folder / 'sitecustomize.py').write_text(
        'from support.other_rclpy import install\ninstall()\n'
    )
    paths = [str(folder), str(Path(__file__).resolve().parents[1]), *sys.path]
    return {
        **os.environ,
        'PYTHONPATH': os.pathsep.join(paths),
        NAMES: ','.join(names),
        FORM: 'newer' * is_newer,
    }


def fits() -> bool:
    """Whether the rclpy that is installed is one of those from which the newer form is made."""
    for module, pairs in _REPLACED.items():
        spec = importlib.util.find_spec(module)
        assert spec is not None and spec.origin is not None
        source = Path(spec.origin).read_text(encoding='utf-8')
        if not all(source.count(old) >= 1 for old, _ in pairs):
            return False
    return True


def install() -> None:
    """Have rclpy imported with what the variables ask for."""
    names = tuple(filter(None, os.environ[NAMES].split(',')))
    sys.meta_path.insert(0, _Finder(names, os.environ[FORM] == 'newer'))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, names: tuple[str, ...], is_newer: bool) -> None:
        self._names, self._is_newer = names, is_newer

    def find_spec(self, name: str, path: object, target: object = None) -> object:
        if name.partition('.')[0] != 'rclpy':
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and isinstance(
            spec.loader, importlib.machinery.SourceFileLoader
        ):
            spec.loader = _Loader(spec.loader, self._names, self._is_newer)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: object, names: tuple[str, ...], is_newer: bool) -> None:
        self._loader, self._names, self._is_newer = loader, names, is_newer

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        source = self._loader.get_source(name)
        for old, new in _REPLACED.get(name, ()) * self._is_newer:
            assert old in source, old
            source = source.replace(old, new)
        for renamed in self._names:
            source = re.sub(rf'\b{renamed}\b', RENAMED.format(renamed), source)
        exec(compile(source, module.__file__, 'exec'), module.__dict__)
        if name == 'rclpy.impl.implementation_singleton':
            for renamed in self._names:
                _rename(module.rclpy_implementation, renamed)


def _rename(compiled: ModuleType, name: str) -> None:
    """Rename what the compiled part of rclpy calls so: a class, or a method of its classes."""
    classes = [item for item in vars(compiled).values() if isinstance(item, type)]
    for holder in (compiled, *classes):
        if name in vars(holder):
            setattr(holder, RENAMED.format(name), vars(holder)[name])
            delattr(holder, name)
