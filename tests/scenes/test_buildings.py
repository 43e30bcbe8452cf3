"""Vaults, domes, houses and stairs: closed joints, their volumes, whether they stand; how joints open."""

import math

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import analysis, loads, packings
from contactdynamics.rigid.step import Step


def stone_scene(friction=0.7, ground=False):
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("stone", density=1.0)
    scene.contact("stone", "stone", friction=friction)
    if ground:
        scene.add(cd.Plane((0, 0, 1)), material="stone", fixed=True)
    return scene


def closed(scene):
    """The simulation of a scene whose blocks touch, and overlap nowhere."""
    sim = cd.Simulation(scene, time_step=1e-3)
    trial = sim.contact_set.trial()
    trial.detect(sim.model, Step(0.0, 1e-3, 0.0, False, False, sim.rows, sim.rows), sim.rows)
    assert trial.deepest(sim.model)[0].share < 1e-12
    return sim


def test_a_dome_is_closed_and_has_its_volume():
    # Between the spheres: 2/3 pi (R2^3 - R1^3), but for the flat faces, of 2 % at 24 by 12.
    scene = stone_scene()
    dome = packings.dome(scene, material="stone", radius=4.0, thickness=0.4, rings=12, segments=24, position=(1, 2, 3))
    assert len(dome.stones) == 12 * 24 and dome.keystone >= 0 and len(dome.base) == 24
    sim = closed(scene)
    free = sim.frame().kinds == 0
    expected = 2 / 3 * math.pi * (4.2**3 - 3.8**3)
    assert sim.frame().masses[free].sum() == pytest.approx(expected, rel=0.03)
    centre = (sim.frame().masses[free] @ sim.positions[free]) / sim.frame().masses[free].sum()
    np.testing.assert_allclose(centre[:2], (1, 2), atol=1e-9)
    assert sim.is_equilibrium()
    # Each stone below the top touches six others: two beside it, one above, one below, with all corners of its faces.
    pairs = {tuple(pair) for pair in sim.is_equilibrium().contacts.bodies.tolist()}
    assert len(pairs) == 12 * 24 + 12 * 24 + 24  # beside, below, and under the keystone


def test_a_dome_with_an_opening_and_a_lower_springing():
    scene = stone_scene()
    dome = packings.dome(scene, material="stone", radius=4.0, thickness=0.5, rings=5, segments=10, angle=60, opening=15)
    assert dome.keystone == -1 and len(dome.stones) == 50
    assert closed(scene).is_equilibrium()


def test_the_least_thickness_of_a_dome_is_heymans():
    # 0.042 of the radius; hinges form at joints, eight rings are enough for three per cent.
    def stands(ratio):
        scene = stone_scene()
        packings.dome(scene, material="stone", radius=1.0, thickness=ratio, rings=8, segments=6)
        sim = cd.Simulation(scene, time_step=1e-3)
        answer = sim.is_equilibrium(tolerance=1.0, max_iterations=1)
        return bool(analysis.balance(sim.frame()._replace(contacts=answer.contacts)))

    assert stands(0.042 * 1.04) and not stands(0.042 * 0.96)


@pytest.mark.parametrize("bond", [False, True])
def test_a_vault_is_closed_and_stands(bond):
    scene = stone_scene()
    vault = packings.vault(scene, material="stone", span=4.0, thickness=0.6, voussoirs=9, length=3.0, rows=3, bond=bond)
    assert len(vault.stones) == (28 if bond else 27) and vault.radius == pytest.approx(2.0)
    sim = closed(scene)
    assert sim.is_equilibrium()
    free = sim.frame().kinds == 0
    step = math.pi / 9  # a voussoir between straight edges
    area = 9 * 0.5 * math.sin(step) * (2.3**2 - 1.7**2)
    assert sim.frame().masses[free].sum() == pytest.approx(3.0 * area, rel=1e-9 if not bond else 0.02)


def test_a_house_is_closed_and_bonded():
    scene = stone_scene(ground=True)
    openings = {"front": [(1.2, 0.0, 2.0, 1.2)], "left": [(1.2, 0.6, 2.0, 1.2)]}
    blocks = packings.house(scene, material="stone", size=(4.0, 3.2), courses=8, openings=openings)
    sim = closed(scene)
    free = sim.frame().kinds == 0
    ring = (4.0 * 3.2 - 3.6 * 2.8) * 1.6
    assert sim.frame().masses[free].sum() == pytest.approx(ring - 0.2 * (0.8 * 1.2 + 0.8 * 0.6), rel=1e-9)
    assert len(blocks) == free.sum() and sim.is_equilibrium(limit=1e-3)
    # At each corner the blocks of a course reach over the joint of the course below.
    corner = [p for p in sim.positions[free] if p[0] < 0.6 and p[1] < 0.6]
    assert {round(float(p[0]), 3) for p in corner} != {round(float(corner[0][0]), 3)}


def test_stairs_stand():
    scene = stone_scene(ground=True)
    blocks = packings.stairs(scene, material="stone", steps=5, tread=0.3, riser=0.2, width=1.0)
    sim = closed(scene)
    volume = sum((5 * 0.3 + 0.3 - k * 0.3) * 0.2 for k in range(5))
    assert sim.frame().masses[sim.frame().kinds == 0].sum() == pytest.approx(volume, rel=1e-9)
    assert len(blocks) and sim.is_equilibrium()


@pytest.mark.parametrize(("call", "words"), [
    (lambda s: packings.dome(s, material="stone", radius=1, thickness=3, rings=2, segments=4), "twice the radius"),
    (lambda s: packings.dome(s, material="stone", radius=1, thickness=0.1, rings=2, segments=4, opening=95), "degrees"),
    (lambda s: packings.vault(s, material="stone", span=2, thickness=0.1, voussoirs=1, length=1), "give 2 or more"),
    (lambda s: packings.house(s, material="stone", size=(0.5, 3), courses=2), "give at least"),
    (lambda s: packings.house(s, material="stone", size=(4, 3), courses=4, openings={"top": []}), "front, right"),
    (lambda s: packings.house(s, material="stone", size=(4, 3), courses=4, openings={"front": [(0, 0, 1, 0.4)]}),
     "from both ends"),
    (lambda s: packings.stairs(s, material="stone", steps=0, tread=1, riser=1, width=1), "steps=0"),
    (lambda s: packings.dome(cd.Scene(gravity=(0, -1)), material="m", radius=1, thickness=0.1, rings=2, segments=4),
     "three dimensions"),
])  # fmt: skip
def test_wrong_buildings(call, words):
    with pytest.raises(cd.InputError, match=words):
        call(stone_scene())


# ---- joints and ground motion ----------------------------------------------------------------------------------------


def test_openings_and_slips_of_joints():
    # A box on a box, moved by hand: tilted about an edge by an angle it opens by width times sine at the other edge.
    scene = stone_scene(ground=True)
    for k in range(2):
        scene.add(cd.Box(1.0), material="stone", position=(0, 0, 0.5 + k))
    sim = cd.Simulation(scene, time_step=1e-3)
    sim.step()
    start = sim.frame()
    angle, slip = 0.1, np.array([0.02, 0.03, 0.0])
    turn = np.array([[math.cos(angle), 0, math.sin(angle)], [0, 1, 0], [-math.sin(angle), 0, math.cos(angle)]])
    pivot = np.array([-0.5, 0, 1.0])
    place = start.positions.copy()
    place[2] = pivot + turn.T @ (place[2] - pivot)
    rotations = start.rotations.copy()
    rotations[2] = (math.cos(angle / 2), 0, -math.sin(angle / 2), 0)
    tilted = analysis.joint_openings(start, start._replace(positions=place, rotations=rotations))
    assert tilted.bodies.tolist() == [[0, 1], [1, 2]]
    np.testing.assert_allclose(tilted.opening, [0, math.sin(angle)], atol=1e-9)
    np.testing.assert_allclose(tilted.slip, [0, 1 - math.cos(angle)], atol=1e-9)
    place = start.positions.copy()
    place[2] += slip
    slid = analysis.joint_openings(start, start._replace(positions=place))
    np.testing.assert_allclose(slid.slip, [0, np.linalg.norm(slip)], atol=1e-9)
    np.testing.assert_allclose(slid.opening, 0, atol=1e-9)


def test_ground_motion_in_three_components(tmp_path):
    # Each component is what it is alone, along its axis.
    times = np.linspace(0, 1, 21)
    values = np.stack([np.sin(7 * times), times**2, np.cos(3 * times)], axis=1)
    whole = loads.shaking(times, values)
    for t in (0.0, 0.33, 0.8, 1.0, 2.0):
        alone = [loads.shaking(times, values[:, k], direction=np.eye(3)[k])(t)[k] for k in range(3)]
        np.testing.assert_allclose(whole(t), alone, atol=1e-15)
    np.testing.assert_allclose(whole(1.0), 0, atol=1e-15)
    np.savetxt(tmp_path / "record.txt", np.column_stack([times, values]))
    read = loads.read_table(tmp_path / "record.txt", 3)
    np.testing.assert_allclose(read[1], values)
    with pytest.raises(cd.InputError, match="two columns, time and value"):
        loads.read_table(tmp_path / "record.txt")
    with pytest.raises(cd.InputError, match="3 columns, time and 2 values"):
        loads.read_table(tmp_path / "record.txt", 2)
