"""Pictures of periodic cells show all bodies inside."""

import numpy as np
import pytest

import contactdynamics as cd


def test_bodies_are_drawn_in_the_images_that_lie_in_the_cell():
    scene = cd.Scene(gravity=(0, 0), cell=cd.Cell([(1.0, 0.0), (0.3, 1.0)], rate=[[0, 2.0], [0, 0]]))
    scene.material("m", density=1.0)
    scene.contact("m", "m", friction=0.0)
    places = np.array([(0.5, 0.5), (2.4, -1.2), (-3.0, 4.1)])
    scene.add_many(0.05, material="m", position=places)
    sim = cd.Simulation(scene, time_step=1e-3)
    frame = sim.frame().inside()
    shares = frame.positions @ np.linalg.inv(frame.cell)
    assert shares.min() >= 0 and shares.max() <= 1 and (frame.ball_centres == frame.positions).all()
    numbers = (frame.positions - places) @ np.linalg.inv(frame.cell)
    assert np.abs(numbers - np.rint(numbers)).max() < 1e-12
    assert frame.velocities == pytest.approx(sim.velocities + numbers @ frame.cell @ [[0, 0], [2.0, 0]], abs=1e-12)
    assert frame.edges_of_cell().reshape(-1, 4) == pytest.approx(
        np.array([(0, 0, 1, 0), (0.3, 1, 1.3, 1), (0, 0, 0.3, 1), (1, 0, 1.3, 1)])
    )
    ax = sim.plot()
    assert len(ax.lines) >= 4  # the edges of the cell
