"""The benchmark of what identification says of wrong data, with one fault and one robot."""

import re


def test_tables_say_what_is_wrong_and_how_often_intervals_hold(benchmark_module):
    text = benchmark_module.tables(1, ('torque constant of joint 2, 5 %',))
    faults, covers = (
        [line for line in text.splitlines() if line.startswith(start)]
        for start in ('torque constant of joint 2, 5 %', '10  ')
    )
    assert len(faults) == len(covers) == 1
    assert re.search(r'torque constant of panda_joint2 \(x 1\.0[45]\d*\) +100 %', faults[0])
    _, parameters, within, *_, refused, named = covers[0].split()
    assert int(parameters) == 29 and float(within) > 80.0
    assert (refused, named) == ('0', '0')
