"""Equations: the unknowns of active contacts, kind by kind, with their kernels."""
