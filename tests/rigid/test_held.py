"""Bodies held in some directions and free in others, against closed forms; in the solver as in the ledger."""

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics import loads
from contactdynamics.rigid import contact_set

pytestmark = pytest.mark.usefixtures("watched")

H = 1e-3


def scene(gravity, **law):
    made = cd.Scene(gravity=gravity)
    made.material("m", density=1000.0)
    made.contact("m", "m", **({"friction": 0.3} | law))
    return made


def closes(sim, size, start=0.0):
    assert sim.energy.closure <= 1e-10 * size
    e = sim.energy
    works = e.force_work + e.drive_work + e.normal_work.sum() + e.tangential_work.sum()
    assert start + works == pytest.approx(e.kinetic, abs=1e-9 * size)


@pytest.mark.parametrize("d", [2, 3])
def test_a_body_on_rails_falls_along_them_alone(d):
    s = scene((1.0, -2.0) if d == 2 else (1.0, -2.0, 3.0))
    shape = cd.Disk(radius=0.1) if d == 2 else cd.Sphere(radius=0.1)
    k = s.add(shape, material="m", position=np.zeros(d), free="y")
    s.force(k, torque=1.0 if d == 2 else (1.0, 1.0, 1.0))
    sim = cd.Simulation(s, time_step=H)
    sim.run(until=1.0, progress=False)
    body = sim.body(k)
    assert body.velocity.tolist() == pytest.approx([0.0, -2.0, 0.0][:d]) and not np.any(body.spin)
    assert body.position[1] == pytest.approx(-1.0) and not body.position[0]
    m = body.mass
    assert sim.energy.force_work == pytest.approx(0.5 * m * 4.0) and sim.energy.kinetic == pytest.approx(2.0 * m)
    assert sim.energy.potential == pytest.approx(-2.0 * m)


def test_a_lid_pushed_down_and_dragged_along_pulls_by_friction():
    # A lid, free in y, driven in x, rests on a block on rails in x: the block is dragged with gamma N.
    s = scene((0.0, 0.0))
    s.add(cd.HalfPlane(normal=(0, 1)), material="m", fixed=True)
    block = s.add(cd.Disk(radius=0.1), material="m", position=(0.0, 0.1), free="x")
    lid = s.add(cd.HalfPlane(normal=(0, -1)), material="m", position=(0.0, 0.2), free="y", motion=(5.0, 0.0), mass=2.0)
    s.force(lid, (0.0, -10.0))
    sim = cd.Simulation(s, time_step=H, tolerance=1e-10)
    sim.run(until=0.5, progress=False)
    m = sim.body(block).mass
    # The rails carry the normal force of the lid: the floor has no load, and the lid drags with 0.3 x 10 N.
    assert sim.body(block).velocity[0] == pytest.approx(0.5 * 3.0 / m, rel=1e-6)
    assert sim.body(lid).velocity.tolist() == pytest.approx([5.0, 0.0], abs=1e-9)
    assert sim.body(lid).position[0] == pytest.approx(2.5) and sim.body(lid).position[1] == pytest.approx(0.2)
    assert sim.energy.drive_work == pytest.approx(0.5 * 3.0 * 5.0, rel=1e-6)
    closes(sim, 10.0)


def test_a_wheel_on_an_axle_turns_with_its_own_inertia():
    # A sphere rests on a cluster that turns about z alone: the torque of friction turns it with I_zz.
    s = scene((0.0, 0.0, 0.0))
    shape = cd.Cluster([0.2, 0.2, 0.15], [(0.0, 0.0, 0.0), (0.3, 0.1, 0.2), (-0.2, 0.3, 0.1)])
    wheel = s.add(shape, material="m", position=(0, 0, 0), rotation=(0.9, 0.1, 0.3, -0.2), free="turn-z")
    s.force(wheel, (3.0, 4.0, 5.0), torque=(1.0, 2.0, 6.0))
    sim = cd.Simulation(s, time_step=H)
    sim.run(until=0.2, progress=False)
    b = sim.bodies
    q = b.orientation[0]
    from contactdynamics.quaternions import conjugate, product

    axis = product(product(conjugate(q), np.array([0.0, 0, 0, 1])), q)[1:]
    moment = (b.inertia[0] * axis**2).sum()
    assert (
        sim.body(wheel).spin.tolist() == pytest.approx([0, 0, 6.0 * 0.2 / moment])
        and not sim.body(wheel).velocity.any()
    )
    assert sim.energy.kinetic == pytest.approx(0.5 * moment * (1.2 / moment) ** 2)
    closes(sim, 1.0)


@pytest.mark.parametrize("free", ["y", "x", "xy", "turn", "x turn"])
def test_impacts_change_free_directions_alone_and_the_ledger_closes(free):
    # A ball hits a held one obliquely, with friction and restitution. Against Newton's law by direction: what the
    # ball loses, the held one gains in its free directions.
    s = scene((0.0, 0.0), friction=0.5, restitution=0.8)
    held = s.add(cd.Disk(radius=0.1), material="m", position=(0, 0), free=free)
    ball = s.add(cd.Disk(radius=0.1), material="m", position=(0.16, 0.13), velocity=(-1.0, -1.3), spin=3.0)
    sim = cd.Simulation(s, time_step=H, tolerance=1e-12)
    m, before, start = sim.body(ball).mass, sim.body(ball).velocity, sim.energy.kinetic
    sim.run(until=0.05, progress=False)
    lost = m * (before - sim.body(ball).velocity)
    assert np.abs(lost).min() > 1e-2 * m
    expected = [lost[c] if letter in free.split()[0].replace("turn", "") else 0.0 for c, letter in enumerate("xy")]
    assert m * sim.body(held).velocity == pytest.approx(expected, abs=1e-12)
    assert (abs(sim.body(held).spin) > 1e-3) == ("turn" in free)
    closes(sim, m, start)


def test_a_held_body_goes_on_from_a_file(tmp_path):
    def made():
        s = scene((0.0, -9.81))
        s.add(cd.HalfPlane(normal=(0, 1)), material="m", fixed=True)
        s.add_many(0.05, material="m", position=[(0.12 * i, 0.051 + 0.11 * j) for i in range(4) for j in range(3)])
        drag = loads.ramp((0.0, 0.0), (0.2, 0.0), 0.0, 0.05)
        lid = s.add(cd.HalfPlane(normal=(0, -1)), material="m", position=(0, 0.4), free="y", motion=drag)
        s.force(lid, (0.0, -50.0))
        return s

    whole = cd.Simulation(made(), time_step=H, recorders=cd.HDF5(tmp_path / "a.h5", every=50))
    assert whole.body(13).mass == pytest.approx(12 * whole.body(1).mass)  # of all other free bodies
    whole.run(until=0.1, progress=False)
    half = cd.Simulation(made(), time_step=H, recorders=cd.HDF5(tmp_path / "b.h5", every=50))
    half.run(until=0.05, progress=False)
    again = cd.Simulation.from_file(tmp_path / "b.h5")
    again.run(until=0.1, progress=False)
    assert (again.positions == whole.positions).all() and (again.velocities == whole.velocities).all()
    assert whole.energy.closure < 1e-9 and whole.body(13).velocity[0] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"free": "q"}, "name directions"),
        ({"free": ""}, "name a direction"),
        ({"free": "xy turn"}, "which is all"),
        ({"free": "y", "fixed": True}, "give one of them"),
        ({"free": "y", "velocity": (1.0, 0.0)}, "in which it is held"),
        ({"free": 3}, "name directions"),
    ],
)
def test_wrong_directions_are_told(options, words):
    with pytest.raises(cd.InputError, match=words):
        scene((0.0, 0.0)).add(cd.Disk(radius=0.1), material="m", **options)


def test_wrong_directions_in_space_are_told():
    s = scene((0.0, 0.0, 0.0))
    with pytest.raises(cd.InputError, match="about one"):
        s.add(cd.Sphere(radius=0.1), material="m", free="turn-x turn-y")
    with pytest.raises(cd.InputError, match="hold its turning"):
        s.add(cd.Sphere(radius=0.1), material="m", free="turn-x", motion=cd.Drive(spin=(0, 1, 0)))
    with pytest.raises(cd.InputError, match="no centre"):
        s.add(cd.Plane(normal=(0, 0, 1)), material="m", free="turn-x")


def test_the_contact_problem_knows_held_directions():
    # The freedoms of a body on rails are those of its rails: W of its contact with a fixed one is 1 / m along them.
    s = scene((0.0, -1.0), friction=0.2)
    s.add(cd.Disk(radius=0.1), material="m", position=(0, 0), fixed=True)
    s.add(cd.Disk(radius=0.1), material="m", position=(0.12, 0.16), free="y")
    sim = cd.Simulation(s, time_step=H)
    problem, m = sim.contact_problem(from_rest=True, slack=1e-3), sim.body(1).mass
    n, t = 0.8, 0.6  # components of the normal and the tangent along y
    assert np.abs(problem.delassus) == pytest.approx(np.abs(np.outer([n, t], [n, t])) / m)


# ---- blocks ----------------------------------------------------------------------------------------------------------


def block(d, wide, high):
    """A rectangle, or a box of depth 0.2 m, centred."""
    x, y = wide / 2, high / 2
    return cd.Polygon([(-x, -y), (x, -y), (x, y), (-x, y)]) if d == 2 else cd.Box((wide, 0.2, high))


def up(d, x, z):
    return (x, z) if d == 2 else (x, 0.0, z)


def floor(d):
    return (cd.HalfPlane if d == 2 else cd.Plane)(up(d, 0.0, 1.0))


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("slides", [False, True])
def test_a_block_rides_on_a_cart_on_rails(d, slides):
    """Cart M on rails, block m upon it: F / (M + m) where it sticks, gamma g where it slides; the rails carry all."""
    gamma, g, heavy = 0.3, 9.81, 20.0
    s = scene(up(d, 0.0, -g), friction=gamma)
    s.add(floor(d), material="m", fixed=True)
    cart = s.add(block(d, 1.0, 0.1), material="m", position=up(d, 0.0, 0.05), free="x", mass=heavy)
    load = s.add(block(d, 0.2, 0.1), material="m", position=up(d, 0.1, 0.15))
    s.add(block(d, 0.2, 0.1), material="m", position=up(d, 2.0, 0.05))  # not held: solved by the other kind
    light = 1000.0 * 0.2 * 0.1 * (1.0 if d == 2 else 0.2)
    force = (heavy + light) * gamma * g * (2.0 if slides else 0.9)
    s.force(cart, up(d, force, 0.0))
    sim = cd.Simulation(s, time_step=H, tolerance=1e-10)
    sim.run(until=0.1, progress=False)
    kinds = {e.number: e.count for e in sim.contact_set.equations}
    assert len(kinds) == 2 and all(kinds.values())
    fast, slow = (force - gamma * light * g) / heavy, gamma * g
    expected = (fast, slow) if slides else (force / (heavy + light),) * 2
    got = sim.body(cart).velocity[0], sim.body(load).velocity[0]
    assert got == pytest.approx([0.1 * a for a in expected], rel=1e-6)
    assert sim.body(cart).position[-1] == 0.05 and not np.any(sim.body(cart).spin)
    assert sim.body(load).position[-1] == pytest.approx(0.15, abs=1e-9)
    closes(sim, force * 0.1)


@pytest.mark.parametrize("d", [2, 3])
def test_blocks_stand_where_those_that_were_held_are_gone(d, monkeypatch):
    monkeypatch.setattr(contact_set, "SMALL", 0)  # contacts are put in order by their kinds
    s = scene(up(d, 0.0, -9.81))
    s.add(floor(d), material="m", fixed=True)
    held = [s.add(block(d, 0.2, 0.1), material="m", position=up(d, 0.3 * k, 0.05), free="x") for k in range(2)]
    stays = s.add(block(d, 0.2, 0.1), material="m", position=up(d, 0.9, 0.05))
    sim = cd.Simulation(s, time_step=H)
    for _ in range(3):
        sim.step()
    sim.remove(held)
    for _ in range(3):
        sim.step()
    found = sim.contact_set.searches[0].found
    assert len(found.kind) and set(found.kind.tolist()) == {sim.contact_set.equations[0].number}
    assert sim.body(stays).position[-1] == pytest.approx(0.05, abs=1e-9)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("penetration", ["moreau", "anticipate"])
def test_a_platen_that_may_not_turn_presses_on_a_block_off_its_middle(d, penetration):
    """It carries its weight and the pressure, dragged sideways at a speed; the block under it is held by friction."""
    s, pressure, area = scene(up(d, 0.0, -9.81)), 2000.0, 0.4
    s.add(floor(d), material="m", fixed=True)
    s.material("slick", density=1000.0)
    s.contact("slick", "m", friction=0.1)
    under = s.add(block(d, 0.2, 0.1), material="m", position=up(d, 0.3, 0.05))
    lid = s.add(block(d, 2.0, 0.1), material="slick", position=up(d, 0.0, 0.15), free="xyz"[d - 1],
                motion=up(d, -0.5, 0.0), mass=5.0)  # fmt: skip
    sim = cd.Simulation(s, time_step=H, tolerance=1e-10, penetration=penetration)
    press = cd.Pressure(lid, pressure, area=area, direction=up(d, 0.0, -1.0))
    sim.before_step.append(press)
    sim.run(until=0.1, progress=False)
    normal = pressure * area + 5.0 * 9.81
    assert press.measured * area == pytest.approx(normal, rel=1e-8)
    assert sim.body(lid).velocity.tolist() == pytest.approx(list(up(d, -0.5, 0.0)), abs=1e-9)
    assert sim.body(lid).position.tolist() == pytest.approx(list(up(d, -0.05, 0.15)), abs=1e-9)
    assert sim.body(under).position.tolist() == pytest.approx(list(up(d, 0.3, 0.05)), abs=1e-9)
    assert sim.energy.drive_work == pytest.approx(0.1 * normal * 0.5 * 0.1, rel=1e-6)  # friction, speed, time
    closes(sim, normal * 0.05)


@pytest.mark.parametrize("d", [2, 3])
def test_a_lid_of_blocks_goes_on_from_a_file_with_the_same_bits(d, tmp_path):
    def made():
        s = scene(up(d, 0.0, -9.81), friction=0.5)
        s.add(floor(d), material="m", fixed=True)
        for k in range(3):
            s.add(block(d, 0.2, 0.1), material="m", position=up(d, 0.05 * (k % 2), 0.051 + 0.101 * k))
        s.add(block(d, 0.5, 0.1), material="m", position=up(d, 0.0, 0.37), free="xyz"[d - 1])
        return s

    ended = []
    for name, until in (("a", 0.06), ("b", 0.03)):
        recorder = cd.HDF5(tmp_path / f"{name}.h5", every=10)
        sim = cd.Simulation(made(), time_step=H, recovery=0.01, recorders=recorder)
        sim.before_step.append(cd.Pressure(4, 500.0, area=0.5, direction=up(d, 0.0, -1.0)))
        sim.run(until=until, progress=False)
        ended.append(sim)
    again = cd.Simulation.from_file(tmp_path / "b.h5")
    again.run(until=0.06, progress=False)
    assert (again.positions == ended[0].positions).all() and (again.velocities == ended[0].velocities).all()
    assert not ended[0].positions[4, : d - 1].any() and ended[0].energy.closure < 1e-9


@pytest.mark.parametrize("d", [2, 3])
def test_blocks_that_are_held_are_opened_along_their_free_ways(d):
    """Two overlap: the held one stays where it is, the other moves away; velocities stay as they are."""
    s = scene(np.zeros(d))
    s.add(block(d, 0.2, 0.2), material="m", position=up(d, 0.0, 0.0), free="xyz"[d - 1])
    s.add(block(d, 0.2, 0.2), material="m", position=up(d, 0.195, 0.02))
    sim = cd.Simulation(s, time_step=H, recovery=1.0, check=False)
    sim.run(until=5 * H, progress=False)
    assert not sim.positions[0].any() and sim.positions[1, 0] > 0.1995 and not sim.velocities.any()
