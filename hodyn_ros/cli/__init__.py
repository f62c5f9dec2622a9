"""The command `hodyn`: what this package computes, from files to files, without writing code."""
