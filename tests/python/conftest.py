"""Every test has a hard time limit, and leaves no shared memory and no process behind."""
import faulthandler
import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
os.environ.setdefault("OMP_NUM_THREADS", "1")

SECONDS_MAX = 150


class TimeLimit(Exception):
    pass


def _on_alarm(signum, frame):
    faulthandler.dump_traceback(file=sys.__stderr__)
    raise TimeLimit("the test took longer than it may")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    marker = item.get_closest_marker("seconds_max")
    before = signal.signal(signal.SIGALRM, _on_alarm)
    signal.alarm(marker.args[0] if marker else SECONDS_MAX)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pytest_configure(config):
    config.addinivalue_line("markers", "seconds_max(n): another time limit than the usual one")


def _shared_segments():
    return {name for name in os.listdir("/dev/shm") if "cais" in name}


@pytest.fixture(autouse=True)
def no_segment_left():
    """Nothing of ours may stay in /dev/shm, however a test's ranks ended."""
    before = _shared_segments()
    yield
    assert not _shared_segments() - before
