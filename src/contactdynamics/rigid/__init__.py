"""Rigid bodies in motion: the step, and its rooms for searches, equations and solvers."""
