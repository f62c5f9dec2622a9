"""Events in any order at a control loop, over more steps than the contract takes."""

import pytest
from support.loop_machine import run_in_any_order

# The laws warn of what the tests want.
pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning')


@pytest.mark.parametrize('number', range(1, 11))
def test_a_stopped_robot_stays_stopped_and_always_recovers(number):
    machine = run_in_any_order(number, steps=100 if number == 1 else 10_000)
    assert machine.answered and all(machine.seen.values()) or number == 1
