"""The ROS 2 side: the node, its messages and parameters. Only this package imports rclpy."""
