"""Models from Denavit-Hartenberg tables of both conventions."""

import numpy as np
import pytest

from hodyn_ros import RobotModel
from hodyn_ros.errors import ModelError
from hodyn_ros.model import DHRow

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


# Source: frankaemika/docs, control_parameters.rst; modified convention; last row: the flange.
QUARTER = np.pi / 2


def test_khalils_form_of_the_modified_convention():
    # KUKA iiwa 14, Stuerz, Affolter and Smith 2017, table 1: position (d, -r sin alpha,
    # r cos alpha) of frame i in frame i-1.
    alphas = [0, QUARTER, -QUARTER, -QUARTER, QUARTER, QUARTER, -QUARTER]
    r = [0, 0, 0.42, 0, 0.4, 0, 0]
    model = RobotModel.from_dh(
        [{'alpha': alpha, 'd': offset} for alpha, offset in zip(alphas, r)], 'modified'
    )
    for pose, alpha, offset in zip(model.B, alphas, r):
        np.testing.assert_allclose(
            pose[:3, 3], [0, -offset * np.sin(alpha), offset * np.cos(alpha)], atol=1e-15
        )


def test_rows_may_be_numbers_or_names():
    rows = [
        DHRow(0.1, 0.2, 0.3, 0.4),
        (0.1, 0.2, 0.3, 0.4),
        {'theta': 0.4, 'a': 0.1, 'd': 0.3},
    ]
    model = RobotModel.from_dh(rows, 'standard')
    np.testing.assert_array_equal(model.B[0], model.B[1])
    assert not np.allclose(model.B[0], model.B[2])
    array = RobotModel.from_dh(np.full((3, 4), 0.1), 'modified')
    assert array.n_joints == 3


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('table', 'options', 'message'),
    [
        ([], {}, 'at least one row'),
        ([(0, 0, 0)], {}, r'Row 0 of the table is .* expected \(a, alpha, d, theta\)'),
        ([(0, 0, 0, 'x')], {}, 'Row 0'),
        ([(0, 0, 0, np.inf)], {}, 'not finite'),
        ([{'r': 1.0}], {}, "holds 'r', expected"),
        ([5.0], {}, 'Row 0'),
        ([(0, 0, 0, 0)], {'convention': 'craig'}, 'expected one of standard, modified'),
        ([(0, 0, 0, 0)], {'joint_types': ['ball']}, "joint type is 'ball', expected one"),
        ([(0, 0, 0, 0)], {'joint_types': ['revolute'] * 2}, '2 joint types'),
        ([(0, 0, 0, 0)], {'joint_types': ['fixed']}, 'no moving joints'),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(table, options, message):
    with pytest.raises(ModelError, match=message):
        RobotModel.from_dh(table, **{'convention': 'standard', **options})
