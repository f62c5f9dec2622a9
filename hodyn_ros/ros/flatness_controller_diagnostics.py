"""Health of the flatness controller: that of the hodyn node, with commands for an output."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from hodyn_ros.ros.diagnostics import Diagnostics

OUTPUT = 'motor_command'


class ControlDiagnostics(Diagnostics):
    """Counters that turn into a message; see `Diagnostics`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._control = {'controller': '', 'reference': ''}
        self._error = self._largest_error = 0.0

    def controlled(self, controller: str, reference: str, error: float) -> None:
        """Note a command.

        Parameters
        ----------
        controller : str
            Name of the control law.
        reference : str
            Where the reference has come from.
        error : float
            Largest tracking error of any joint [rad] or [m].
        """
        self._control = {'controller': controller, 'reference': reference}
        self._error = error
        self._largest_error = max(self._largest_error, error)

    def _output_status(self, interval: float, now: float) -> DiagnosticStatus:
        status = super()._output_status(interval, now)
        status.name = f'{self._name}: {OUTPUT}'
        values = {
            **self._control,
            'tracking error': f'{self._error:.3g}',
            'largest tracking error': f'{self._largest_error:.3g}',
        }
        self._largest_error = 0.0
        status.values = [
            *status.values, *(KeyValue(key=key, value=value) for key, value in values.items())
        ]
        return status
