"""What holds for all tests: which of them are quick, their order, and their surroundings."""

import gc
import importlib.util
import os
import signal
import sys
import threading
import warnings
from collections import defaultdict
from pathlib import Path

import pytest

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # a ROS distribution without it: its tests skip themselves
    settings = None

# Threads of BLAS wait for each other where several workers share two cores.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

HERE = Path(__file__).parent
# Seconds of the processor that each test takes, as `pytest --record-durations` wrote them.
DURATIONS = HERE / 'durations.txt'
# What takes longer than this belongs to the long tests; shorter than the other is not recorded.
QUICK_SECONDS = 1.0
RECORDED_SECONDS = 0.5

# What several tests need; older versions of pytest do not know the option `pythonpath`.
sys.path.insert(0, str(HERE))

# What tests import and a ROS distribution may lack: where it is missing, the module that needs it
# is skipped by name. Where a module of this package is missing, that is an error.
TEST_PACKAGES = {
    'casadi',
    'catkin_pkg',
    'distributed',
    'docutils',
    'hypothesis',
    'matplotlib',
    'mujoco',
    'pinocchio',
    'plotly',
    'pyarrow',
    'rerun',
    'rosbags',
    'sphinx',
}
# Not of all Pythons and distributions, so that no test asks whether it is free of warnings there.
WARNINGS = [
    'error',
    # Those of the garbage collector come in whichever test it runs.
    'default::ResourceWarning',
    'default::pytest.PytestUnraisableExceptionWarning',
    # lark, behind the messages of ROS, imports modules that Python is to lose.
    "ignore:module 'sre_:DeprecationWarning:lark",
    # docutils ignores its own, but a thread that compiles meanwhile may restore what it found.
    'ignore:The frontend:DeprecationWarning',
    'ignore::DeprecationWarning:docutils',
]


class CaughtWarnings(warnings.catch_warnings):
    """Filters of warnings as Python has them, for the thread of the tests alone.

    All threads share the filters. One that compiles would put back, during one test, those that
    it found during another.
    """

    def __enter__(self):
        self.is_in_tests = threading.current_thread() is threading.main_thread()
        return super().__enter__() if self.is_in_tests else []

    def __exit__(self, *reason):
        if self.is_in_tests:
            super().__exit__(*reason)


warnings.catch_warnings = CaughtWarnings

# Several test processes share the cores; threads of BLAS in each would wait for one another.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

# A shell that runs the tests in the background has them ignore Ctrl-C, and so all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is for no test to say: the machine may be busy. A quick run has the
# same examples each time; a long one looks for what is not known yet.
if settings is not None:
    COMMON = {'deadline': None, 'suppress_health_check': [HealthCheck.too_slow]}
    settings.register_profile('quick', max_examples=10, derandomize=True, **COMMON)
    settings.register_profile('long', max_examples=200, print_blob=True, **COMMON)


def pytest_addoption(parser):
    parser.addoption(
        '--record-durations',
        action='store_true',
        help=f'write the seconds of what took long into {DURATIONS.relative_to(HERE.parent)}',
    )


def is_long(config):
    """Whether the long tests are asked for, as `make test-long` does: all, or the slow ones."""
    return config.option.markexpr in ('', 'slow')


def pytest_configure(config):
    if settings is not None:
        settings.load_profile('long' if is_long(config) else 'quick')
    if hasattr(pytest, 'version_tuple'):  # from pytest 7 on
        for warning in WARNINGS:
            config.addinivalue_line('filterwarnings', warning)


# --- Tiers --------------------------------------------------------------------------------------


def recorded_durations():
    """Seconds of each test that was recorded, by its name."""
    lines = DURATIONS.read_text(encoding='utf8').splitlines() if DURATIONS.exists() else []
    pairs = (line.split(maxsplit=1) for line in lines if not line.startswith('#'))
    return {name: float(seconds) for seconds, name in pairs}


def path_of(node):
    """File of a test; older versions of pytest have another name for it."""
    return Path(str(getattr(node, 'path', None) or node.fspath))


def name_of(item):
    return item.nodeid.removeprefix(HERE.name + '/')


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark the contract and what is slow, and sort by files, those that take longest first.

    Slow are all cases of a parametrised function but the first, unless it is marked `every_case`,
    what was recorded to take longer than `QUICK_SECONDS`, and what needs packages that only the
    long tests have (`needs`). The contract is never slow. In a long run the tests of examples
    from hypothesis are slow ones too: they try more of them then.
    """
    seconds = recorded_durations()
    folders = defaultdict(float)
    seen = set()
    for item in items:
        name = name_of(item)
        folders[path_of(item)] += seconds.get(name, 0.0)
        if path_of(item).parent.name == 'contract':
            item.add_marker(pytest.mark.contract)
            continue
        function = name.partition('[')[0]
        is_other_case = function in seen and not item.get_closest_marker('every_case')
        seen.add(function)
        is_large = item.get_closest_marker('needs') is not None
        is_example = is_long(config) and getattr(item.obj, 'is_hypothesis_test', False)
        takes_long = seconds.get(name, 0.0) > QUICK_SECONDS
        if is_other_case or is_large or is_example or takes_long:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: -folders[path_of(item)])
    # What has been imported and collected stays to the end: the collector need not look at it.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Skip a test, before its fixtures are made, whose packages are not installed."""
    for mark in item.iter_markers('needs'):
        missing = [name for name in mark.args if importlib.util.find_spec(name) is None]
        if missing:
            pytest.skip(
                f'{", ".join(missing)} cannot be imported: make test-long installs it'
            )


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """Skip a file that imports one of `TEST_PACKAGES` that is not installed."""
    outcome = yield
    report = outcome.get_result()
    if report.outcome == 'failed' and isinstance(collector, pytest.Module):
        found = [
            name
            for name in TEST_PACKAGES
            if f"No module named '{name}" in str(report.longrepr)
        ]
        if found:
            report.outcome = 'skipped'
            report.longrepr = (
                str(path_of(collector)),
                None,
                f'Skipped: {found[0]} is not installed',
            )


# --- Durations ----------------------------------------------------------------------------------


def processor_seconds():
    """Seconds that this process has computed, and those that it started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart():
    global started
    started = processor_seconds()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    """Tell what a test takes, with its fixtures; those of a module count for its first test."""
    if item.config.getoption('--record-durations') and call.when == 'teardown':
        item.user_properties.append(('seconds', processor_seconds() - started))


def pytest_terminal_summary(terminalreporter, config):
    """Replace the records of all tests that ran (processes of xdist report to this one)."""
    if not config.getoption('--record-durations'):
        return
    reports = sum(terminalreporter.stats.values(), [])
    taken = {
        report.nodeid.removeprefix(HERE.name + '/'): sum(
            s for key, s in report.user_properties if key == 'seconds'
        )
        for report in reports
        if getattr(report, 'when', None) == 'teardown'
    }
    everything = recorded_durations() | taken
    kept = {name: s for name, s in everything.items() if s > RECORDED_SECONDS}
    lines = ['# seconds of the processor, test; written by: pytest --record-durations']
    lines += [f'{s:.1f} {name}' for name, s in sorted(kept.items())]
    DURATIONS.write_text('\n'.join(lines) + '\n', encoding='utf8')
