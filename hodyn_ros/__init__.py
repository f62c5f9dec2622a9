"""Joint torques of rigid-body robots with their exact time derivatives."""
