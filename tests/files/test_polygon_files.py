"""Polygons in exported files, and overlaps of polygons that are opened while a simulation runs."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import analysis
from contactdynamics.files import archive
from contactdynamics.plotting import plot_scene


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A wall beside a few grains, and the file of its run."""
    path = tmp_path_factory.mktemp("polygons") / "run.h5"
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("m", density=2000.0)
    scene.contact("m", "m", friction=0.6)
    scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    for k in range(3):
        scene.add(cd.Rectangle(0.4, 0.2), material="m", position=(0.01 * k, 0.1 + 0.2 * k))
    grains = [cd.Polygon.irregular(0.1, seed=k) for k in range(5)]
    scene.add_many(grains, material="m", position=[(1.0 + 0.3 * k, 0.2) for k in range(5)], rotation=np.arange(5.0),
                   velocity=np.full((5, 2), (0.3, 0.0)))  # fmt: skip
    scene.add(cd.Cluster([0.05, 0.05], np.array([(-0.04, 0), (0.04, 0)])), material="m", position=(-0.6, 0.3),
              rotation=0.4)  # fmt: skip
    sim = cd.Simulation(scene, time_step=1e-3, solver="nlgs", recorders=[cd.HDF5(path, every=0.1)])
    sim.run(until=1.0, progress=False)
    return sim, path


def test_an_exported_file_holds_the_polygons(run, tmp_path):
    sim, path = run
    small = tmp_path / "small.h5"
    archive.export_frames(path, small, [0.3, 1.0], full=[1.0])
    with cd.open(small) as recording, cd.open(path) as whole:
        last, light, live = recording[-1], recording.at(0.3), sim.frame()
        for frame, exact in ((last, live), (light, whole.at(0.3))):
            np.testing.assert_array_equal(frame.polygon_starts, exact.polygon_starts)
            np.testing.assert_array_equal(frame.polygon_bodies, exact.polygon_bodies)
            np.testing.assert_allclose(frame.polygon_corners, exact.polygon_corners, atol=1e-6)
            np.testing.assert_allclose(frame.ball_centres, exact.ball_centres, atol=1e-6)
        assert not np.allclose(light.polygon_corners, last.polygon_corners, atol=1e-3)  # the grains have moved
        # what is computed from the last frame is what the simulation gives
        assert analysis.weight_balance(last) == pytest.approx(analysis.weight_balance(live), rel=1e-5)
        whole_answer, answer = analysis.balance(live, 0.6), analysis.balance(last, 0.6)
        assert answer.unbalanced == pytest.approx(whole_answer.unbalanced, rel=1e-3, abs=1e-5)
        np.testing.assert_allclose(analysis.contact_forces(last), analysis.contact_forces(live), rtol=1e-5, atol=1e-4)
        for frame in (last, light):
            ax = plot_scene(frame)
            ax.figure.canvas.draw()
            plt.close(ax.figure)
    with pytest.raises(cd.InputError, match="some frames"):
        cd.Simulation.from_file(small)


def test_recovery_opens_an_overlap_of_blocks():
    # A block of side 1 (its inner radius, the size by which overlaps are measured, is 0.5) is 1 cm in the ground: 2 %
    # of the size, above RECOVER_ABOVE. It is lifted to RECOVER_TO of the size at the given speed at most; the work is
    # m g times the lift, and it gets no velocity.
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.5)
    scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    scene.add(cd.Rectangle(1.0, 1.0), material="m", position=(0, 0.49))
    speed, h = 0.1, 1e-3
    sim = cd.Simulation(scene, time_step=h, recovery=speed, tolerance=1e-8)
    heights = [0.49]
    for _ in range(200):
        sim.step()
        heights.append(sim.positions[1, 1])
        assert np.abs(sim.velocities).max() < 1e-6
    steps = np.diff(heights)
    assert steps.max() <= speed * h * (1 + 1e-9) and steps[0] == pytest.approx(speed * h, rel=1e-6)
    left = 0.5 - heights[-1]
    assert 0.5 * sim.RECOVER_TO * 0.5 < left <= sim.RECOVER_ABOVE * 0.5
    assert sim.energy.recovery_work == pytest.approx(1000.0 * 9.81 * (0.01 - left), rel=1e-6)
    assert abs(sim.rotations[1]) < 0.1 * sim.RECOVER_TO  # the accuracy to which the lift is computed


def test_recovery_turns_a_block_that_is_in_the_ground_by_one_corner():
    # Turned by 0.05 and placed so that the lower corner is 1.5 cm deep: recovery lifts the corner, which
    # also turns the block.
    scene = cd.Scene(gravity=(0, 0))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.5)
    scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    angle = 0.05
    corner = 0.5 * (math.cos(angle) + math.sin(angle))  # depth of the lower corner below the centre
    scene.add(cd.Rectangle(1.0, 1.0), material="m", position=(0, corner - 0.015), rotation=angle)
    sim = cd.Simulation(scene, time_step=1e-3, recovery=1.0, check=False)
    for _ in range(200):
        sim.step()
    lowest = sim.frame().polygon_corners[:, 1].min()
    assert -sim.RECOVER_ABOVE * 0.5 <= lowest < 0
    assert abs(sim.rotations[1]) < angle - 0.005  # the push on that corner turns it back
    assert sim.energy.recovery_work == 0 and np.abs(sim.velocities).max() < 1e-9
