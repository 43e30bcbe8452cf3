"""Numbering the marks of a plate."""

import math

import numpy as np


def label_places(marks: np.ndarray, taken: np.ndarray, unit: float = 1.0) -> np.ndarray:
    """A place (k, 2) near each mark, away from the points ``taken`` (p, 2) of the drawing and from other labels.

    ``unit`` is the half-width of a label in the units of the drawing.
    """
    angles = np.linspace(0, 2 * math.pi, 24, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    places = []
    for mark in marks:
        for distance in (2.4, 3.2, 4.5, 6.0):
            candidates = mark + distance * unit * ring
            room = np.hypot(*(candidates[:, None] - taken).T).min(axis=0)
            if room.max() > 1.9 * unit:
                break
        places.append(candidates[room.argmax()])
        taken = np.vstack([taken, places[-1], places[-1] + (0.8 * unit, 0), places[-1] - (0.8 * unit, 0)])
    return np.array(places)
