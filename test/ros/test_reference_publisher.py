"""The publisher of a reference trajectory waits for the end of the motion, not only of a time."""

import itertools

from hodyn_msgs.msg import JointEffortTrajectory
from rclpy.duration import Duration
from rosgraph_msgs.msg import Clock
from support.messages import time_of
from support.ros_harness import TIMEOUT, Peer
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros.ros.nodes.reference_publisher import PAUSE, ReferencePublisher
from hodyn_ros.trajectory import panda_sinusoids

SECOND = 10**9


def test_next_trajectory_is_sent_after_the_end_of_the_motion():
    peer = Peer('reference_publisher')
    clock = peer.offer(Clock, '/clock')
    answers = peer.offer(JointEffortTrajectory, 'hodyn_node/effort_trajectory')
    received = peer.keep(JointTrajectory, 'joint_trajectory')
    peer.run(ReferencePublisher, {'use_sim_time': True})
    ticks = itertools.count(10 * SECOND, SECOND // 5)

    def tick():
        time = next(ticks)
        clock.publish(Clock(clock=time_of(time)))
        nodes = peer.node.get_clock()
        peer.wait(lambda: nodes.now().nanoseconds == time, 'time')
        return time

    try:
        peer.wait(lambda: tick() and received, 'the first one')
        # Planned late: the motion begins long after the trajectory has been sent.
        begin = tick() + 100 * SECOND
        answer = JointEffortTrajectory()
        answer.header.stamp = time_of(begin)
        answers.publish(answer)
        assert answers.wait_for_all_acked(Duration(seconds=TIMEOUT))
        end = begin + round((panda_sinusoids().duration + PAUSE) * SECOND)
        while tick() < end - SECOND:
            assert len(received) == 1
        peer.wait(lambda: tick() > end and len(received) > 1, 'the second one')
        assert len(received) == 2
    finally:
        peer.close()
