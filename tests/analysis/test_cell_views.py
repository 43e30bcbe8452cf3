"""Pictures of periodic cells show all bodies inside."""

import numpy as np

import contactdynamics as cd
from contactdynamics import plotting


def test_bodies_are_drawn_in_the_images_that_lie_in_the_cell():
    scene = cd.Scene(gravity=(0, 0), cell=cd.Cell([(1.0, 0.0), (0.3, 1.0)]))
    scene.material("m", density=1.0)
    scene.contact("m", "m", friction=0.0)
    places = np.array([(0.5, 0.5), (2.4, -1.2), (-3.0, 4.1)])
    scene.add_many(0.05, material="m", position=places)
    sim = cd.Simulation(scene, time_step=1e-3)
    frame = plotting._inside(sim.frame())
    shares = frame.positions @ np.linalg.inv(frame.cell)
    assert shares.min() >= 0 and shares.max() <= 1 and (frame.ball_centres == frame.positions).all()
    numbers = (frame.positions - places) @ np.linalg.inv(frame.cell)
    assert np.abs(numbers - np.rint(numbers)).max() < 1e-12
    ax = sim.plot()
    assert len(ax.lines) >= 4  # the edges of the cell
