"""Records of the robots of identification as the samples that `identify` and `compare` take."""

from hodyn_ros.files import Samples


def samples(record, **changes):
    """Measured samples of a record, with other values in some fields."""
    measured = {
        what: record.get(what) for what in ('effort', 'motor_position', 'motor_torque')
    }
    return Samples(
        record['names'],
        record['time'],
        record['position'][:, None],
        name='recording',
        is_measured=True,
        **{**measured, **changes},
    )
