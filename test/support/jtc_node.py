"""The model of joint_trajectory_controller behind its topic."""

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from trajectory_msgs.msg import JointTrajectory


class JtcNode(Node):
    """Takes what comes on `~/joint_trajectory`; whoever owns it lets its periods pass.

    Its time is that of the periods, in nanoseconds. Unlike the controller it asks for what was
    sent before it was found: tests need not wait for that.
    """

    def __init__(self, controller, now, takes_effort=True, **options):
        super().__init__('joint_trajectory_controller', **options)
        self.controller, self.now, self.takes_effort = controller, now, takes_effort
        self.messages, self.refusals = [], []
        profile = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.create_subscription(JointTrajectory, '~/joint_trajectory', self._take, profile)

    def _take(self, message):
        if not self.takes_effort:
            for point in message.points:
                point.effort = []
        try:
            self.controller.take(message, self.now)
            self.messages.append(message)
        except ValueError as error:
            self.refusals.append(str(error))

    def step(self, positions, velocities):
        """Command of a period, by interface."""
        command = self.controller.update(self.now, positions, velocities)
        self.now += self.controller.period
        return command
