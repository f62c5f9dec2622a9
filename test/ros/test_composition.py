"""Several nodes in one process: each has its own robot and names, and ends alone."""

from __future__ import annotations

import numpy as np
from hodyn_msgs.msg import JointEffort, JointMotion
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from support import robots
from support.messages import MOTION, NAMES, joint_motion, rows
from support.ros_harness import Peer

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.ros.nodes.hodyn_node import HodynNode

ROBOTS = {'left': (robots.TWO_LINK, NAMES), 'right': (robots.OTHER_JOINTS, ('rail',))}


def test_two_nodes_of_one_executor_answer_for_their_robots_and_one_ends_alone():
    peer = Peer('hodyn_node')
    executor, nodes = SingleThreadedExecutor(context=peer.context), {}
    for name, (xml, _) in ROBOTS.items():
        nodes[name] = HodynNode(
            context=peer.context,
            namespace=f'{peer.namespace}/{name}',
            parameter_overrides=[Parameter('robot_description', value=xml)],
        )
        executor.add_node(nodes[name])
        peer.offer(JointMotion, f'{name}/joint_motion')
        peer.keep(JointEffort, f'{name}/hodyn_node/joint_effort')
    peer.spin_by(executor)
    for gone in (None, 'left'):
        if gone:
            executor.remove_node(nodes[gone])
            nodes.pop(gone).destroy_node()
            peer.forget()
        for name in nodes:
            xml, names = ROBOTS[name]
            motion = MOTION[:, : len(names)]
            sent = joint_motion(motion, names)

            def answered(name=name, sent=sent):
                peer.publishers[f'{name}/joint_motion'].publish(sent)
                return peer.messages[f'{name}/hodyn_node/joint_effort']

            effort = peer.wait(answered, 'answer')[-1]
            expected = inverse_dynamics(RobotModel.from_urdf(xml), motion)
            assert tuple(effort.joint_names) == tuple(names)
            np.testing.assert_allclose(rows(effort), expected, rtol=1e-9)
    for node in nodes.values():
        executor.remove_node(node)
    peer.close()
    for node in nodes.values():
        node.destroy_node()
