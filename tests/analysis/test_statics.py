"""Equilibrium by the laws that frames and files carry: cohesion, tension, static friction, rolling resistance."""

import json
import math

import h5py
import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import analysis
from contactdynamics.files import hdf5 as storage

G = 10.0


def tilted(angle, shape, place, **law):
    """A body that touches a floor, gravity turned by ``angle`` from the normal of the floor; started, not moved."""
    scene = cd.Scene(gravity=(G * math.sin(angle), -G * math.cos(angle)))
    scene.material("stone", density=2.0)
    scene.contact("stone", "stone", **law)
    scene.add(cd.HalfPlane(normal=(0, 1)), material="stone", fixed=True)
    scene.add(shape, material="stone", position=place)
    return cd.Simulation(scene, time_step=1e-2)


def both(sim) -> tuple[bool, bool]:
    """The answers of the one-step test and of the programme."""
    answer = sim.is_equilibrium(tolerance=1e-9)
    return bool(answer), bool(analysis.balance(sim.frame()._replace(contacts=answer.contacts)))


def block(angle, width=2.0, height=0.2, **law):
    return tilted(angle, cd.Rectangle(width, height), (0, height / 2), **law)


WEIGHT = 2.0 * 2.0 * 0.2 * G  # of the block


@pytest.mark.parametrize("share, stands", [(1.02, True), (0.98, False)])
def test_cohesion_holds_a_block_on_a_slope(share, stands):
    # Each of its two contact points has the cohesion c: W sin = mu (W cos + 2 c).
    angle, mu = math.radians(30), 0.3
    c = 0.5 * WEIGHT * (math.sin(angle) / mu - math.cos(angle))
    assert both(block(angle, friction=mu, cohesion=share * c)) == (stands, stands)
    assert both(block(angle, friction=mu)) == (False, False)


@pytest.mark.parametrize("share, stands", [(1.02, True), (0.98, False)])
def test_cohesion_keeps_a_tower_from_toppling(share, stands):
    # About the lower corner: W (h/2 sin - b/2 cos) = c b.
    angle, b, h = math.radians(30), 0.2, 1.0
    weight = 2.0 * b * h * G
    c = weight * (h * math.sin(angle) - b * math.cos(angle)) / (2 * b)
    assert both(block(angle, b, h, friction=0.9, cohesion=share * c)) == (stands, stands)


@pytest.mark.parametrize("name", ["cohesion", "tension"])
def test_a_block_hangs_on_its_two_points(name):
    # Falling and hanging are both solutions of the law of one step. Where the strength is just enough the sweeps, which
    # take one point after the other, load one of them beyond it on their way, and the block falls: the programme alone
    # finds the equilibrium.
    for share, one, two in ((0.98, False, False), (1.02, None, True), (2.0, True, True)):
        found = both(block(math.pi, friction=0.3, **{name: share * WEIGHT / 2}))
        assert found[1] is two and (one is None or found[0] is one)


def test_tension_gives_no_friction():
    # Pressed, it slides beyond atan(mu) whatever the tension; hanging, nothing holds it sideways.
    for angle, stands in ((math.atan(0.29), True), (math.atan(0.31), False), (math.pi - 0.05, False)):
        assert both(block(angle, friction=0.3, tension=10 * WEIGHT)) == (stands, stands)


@pytest.mark.parametrize("share, stands", [(1.02, True), (0.98, False)])
def test_tension_keeps_a_tower_from_toppling_while_its_lower_corner_holds_it(share, stands):
    # The upper corner pulls with t = W (h sin - b cos) / 2b and has no friction; the lower one pushes with W cos + t.
    angle, b, h = math.radians(20), 0.2, 1.0
    weight = 2.0 * b * h * G
    pull = weight * (h * math.sin(angle) - b * math.cos(angle)) / (2 * b)
    assert both(block(angle, b, h, friction=0.9, tension=share * pull)) == (stands, stands)
    mu = weight * math.sin(angle) / (weight * math.cos(angle) + pull)
    assert both(block(angle, b, h, friction=share * mu, tension=2 * pull)) == (stands, stands)


@pytest.mark.parametrize("share, stands", [(0.98, True), (1.02, False)])
def test_static_friction_and_rolling_resistance(share, stands):
    assert both(block(math.atan(0.5 * share), friction=0.2, static_friction=0.5)) == (stands, stands)
    disk = tilted(math.atan(0.1 * share), cd.Disk(0.5), (0, 0.5), friction=0.4, rolling=0.05)
    assert both(disk) == (stands, stands)


def test_rolling_resistance_needs_pressure_also_with_cohesion():
    # On the vertical wall the disk hangs by cohesion alone, P_n = 0: nothing resists rolling, whatever the friction.
    sim = tilted(math.pi / 2, cd.Disk(0.5), (0, 0.5), friction=0.5, rolling=0.4, cohesion=1e3)
    assert both(sim) == (False, False)


@pytest.mark.parametrize("seed", range(24))
def test_random_bodies_and_laws(seed):
    # The two answers agree wherever a turn of gravity by 2 % does not change that of the programme.
    rng = np.random.default_rng(seed)
    law = {"friction": rng.uniform(0, 0.8)}
    if seed % 2:
        law["static_friction"] = law["friction"] + rng.uniform(0, 0.4)
    if seed % 3:
        law[("cohesion", "tension")[seed % 3 - 1]] = rng.uniform(0, 3)
    angle = rng.uniform(0, 1.2)
    if seed % 4 == 3:
        sim = tilted(angle, cd.Disk(0.3), (0, 0.3), **law, rolling=rng.uniform(0, 0.3))
    else:
        b, h = rng.uniform(0.2, 1.0, 2)
        sim = block(angle, b, h, **law)
    answer = sim.is_equilibrium(tolerance=1e-9)
    frame = sim.frame()._replace(contacts=answer.contacts)
    near = [
        bool(analysis.balance(frame._replace(gravity=G * np.array([math.sin(a), -math.cos(a)]))))
        for a in (0.98 * angle, angle, 1.02 * angle)
    ]
    if len(set(near)) == 1:
        assert bool(answer) is near[0]


def test_random_piles_of_blocks_with_cohesion():
    # Stacks of shifted blocks: the programme finds what the solver finds.
    answers = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        scene = cd.Scene(gravity=(0, -G))
        scene.material("stone", density=2.0)
        scene.contact("stone", "stone", friction=0.6, cohesion=float(rng.choice([0.0, 4.0])))
        scene.add(cd.HalfPlane(normal=(0, 1)), material="stone", fixed=True)
        x = 0.0
        for k in range(4):
            scene.add(cd.Rectangle(1.0, 0.3), material="stone", position=(x, 0.15 + 0.3 * k))
            x += rng.uniform(0, 0.45)
        one, two = both(cd.Simulation(scene, time_step=1e-2))
        assert one == two
        answers.append(one)
    assert set(answers) == {True, False}


def test_forces_of_the_programme_lie_in_the_laws():
    sim = block(math.radians(30), friction=0.3, cohesion=1.2 * WEIGHT)
    answer = sim.is_equilibrium(tolerance=1e-9)
    c = analysis.balance(sim.frame()._replace(contacts=answer.contacts)).contacts
    force = c.impulse / sim.time_step
    assert (force[:, 0] >= -1.2 * WEIGHT - 1e-9).all()
    assert (np.abs(force[:, 1]) <= 0.3 * (force[:, 0] + 1.2 * WEIGHT) + 1e-9).all()
    total = np.einsum("kij,ki->j", c.frame, force) * (1 if c.bodies[0, 1] == 1 else -1)
    assert total == pytest.approx(-sim.frame().masses[1] * sim.frame().gravity, rel=1e-7)


# ---- the laws travel -------------------------------------------------------------------------------------------------


def mixed_scene():
    """Two materials with laws of their own, the pair of which is mixed, and one stated pair."""
    scene = cd.Scene(gravity=(0, -G))
    scene.material("ground", density=1.0, friction=0.9, cohesion=2.0)
    scene.material("stone", density=2.0, friction=0.4, cohesion=1.0)
    scene.contact("stone", "stone", friction=0.2, static_friction=0.3, rolling=0.01)
    scene.add(cd.Rectangle(4, 1), material="ground", fixed=True, position=(0, -0.5))
    for k in range(2):
        scene.add(cd.Disk(0.2), material="stone", position=(0, 0.2 + 0.4 * k))
    return scene


def test_frames_and_files_carry_the_laws(tmp_path):
    path = tmp_path / "run.h5"
    sim = cd.Simulation(mixed_scene(), time_step=1e-3, recorders=[cd.HDF5(path)])
    sim.run(until=0.02)
    live = sim.frame()
    with cd.open(path) as recording:
        stored = recording[-1]
    for frame in (live, stored):
        found = {tuple(sorted(pair)): frame.laws[k] for pair, k in
                 zip(frame.contacts.bodies.tolist(), frame.contact_laws, strict=True)}  # fmt: skip
        assert found[0, 1] == cd.Law(friction=math.sqrt(0.9 * 0.4), cohesion=1.0)
        assert found[1, 2] == cd.Law(friction=0.2, static_friction=0.3, rolling=0.01)
    assert stored.laws == live.laws and (stored.contact_laws == live.contact_laws).all()
    assert analysis.balance(live) and analysis.balance(stored)
    assert analysis.mobilised_friction(stored).ratios == pytest.approx(analysis.mobilised_friction(live).ratios)


def test_frames_without_laws_need_the_argument(tmp_path):
    path = tmp_path / "run.h5"
    cd.Simulation(mixed_scene(), time_step=1e-3, recorders=[cd.HDF5(path)]).run(until=0.02)
    with h5py.File(path, "a") as file:
        said = json.loads(file.attrs["parameters"])
        file.attrs["parameters"] = json.dumps({k: v for k, v in said.items() if k not in ("pairs", "order")})
    with storage.open(path) as recording:
        frame = recording[-1]
    assert frame.laws == () and (frame.contact_laws == -1).all()
    for function in (analysis.balance, analysis.mobilised_friction, analysis.largest_push):
        with pytest.raises(cd.InputError, match=r"no laws of contact; give friction="):
            function(frame)
    assert analysis.balance(frame, 0.3) and len(analysis.mobilised_friction(frame, 0.3).ratios) == 2


def test_friction_given_replaces_that_of_the_laws_and_leaves_the_rest():
    angle = math.radians(30)
    sim = block(angle, friction=0.3, cohesion=WEIGHT)
    frame = sim.frame()._replace(contacts=sim.is_equilibrium().contacts)
    # W sin = mu (W cos + 2 W)
    least = math.sin(angle) / (math.cos(angle) + 2)
    assert analysis.balance(frame)
    assert analysis.balance(frame, 1.01 * least) and not analysis.balance(frame, 0.99 * least)
