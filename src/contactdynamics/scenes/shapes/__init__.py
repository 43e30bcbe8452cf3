"""Shapes and their mass properties."""
