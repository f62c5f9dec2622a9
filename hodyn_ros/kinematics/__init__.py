"""Motion of bodies and links: poses, twists and the time derivatives of twists."""
