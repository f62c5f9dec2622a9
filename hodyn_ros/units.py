"""Units: of time in messages, and of joints that turn or slide."""

__all__ = ['NANOSECONDS', 'unit_of']

NANOSECONDS = 1_000_000_000
"""In a second."""

_LINEAR = {'rad': 'm', 'N m': 'N', 'N m/rad': 'N/m'}


def unit_of(angular: str, is_linear: bool, order: int = 0) -> str:
    """Unit of a time derivative of a quantity of a joint.

    Parameters
    ----------
    angular : {'rad', 'N m', 'N m/rad'}
        Unit of the quantity at a joint that turns.
    is_linear : bool
        Whether the joint slides.
    order : int
        Number of time derivatives.

    Returns
    -------
    str
        Such as 'N m/s^2' or 'm/s'.
    """
    unit = _LINEAR[angular] if is_linear else angular
    return unit + ('', '/s', f'/s^{order}')[min(order, 2)]
