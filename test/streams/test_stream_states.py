"""Events in any order, over more steps than the contract takes."""

import pytest
from support.stream_machine import run_in_any_order


@pytest.mark.parametrize('number', range(1, 6))
def test_guarantees_hold_over_many_steps(number):
    steps = 10 if number == 1 else 100
    run_in_any_order(number, examples=steps // 5, steps=steps)
