"""Deformable parts: the effective inertia, bars and beams, and the impact of the elastic bar."""

import math

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.cli import main
from contactdynamics.systems.elastic import impacting_bar


def orders(errors):
    return np.log2(np.array(errors[:-1]) / errors[1:])


# ---- the implicit treatment ------------------------------------------------------------------------------------------


def test_oscillator_keeps_its_energy_with_any_step():
    # The mean of the positions and of the velocities: (u_f^2 - u_i^2)/2 = -w^2 (q_i + q_f)/2 (q_f - q_i) exactly, so
    # u^2 + w^2 q^2 is constant; and tan(phase / 2) = w h / 2 per step.
    w = 1000.0
    system = cd.System(inertia=[2.0], stiffness=[2 * w * w])
    for h in (1e-4, 1e-3, 0.1):
        motion = cd.integrate(system, q=(1.0,), u=(0.0,), step=h, until=50 * h)
        energy = motion.ledger.kinetic + motion.ledger.potential
        assert np.allclose(energy, w * w, rtol=1e-11, atol=0)
        phases = 2 * math.atan(w * h / 2) * np.arange(51)
        assert np.allclose(motion.q[:, 0], np.cos(phases), rtol=0, atol=1e-9)
        assert np.abs(motion.ledger.closure).max() < 1e-11 * w * w
    loose = cd.System(inertia=[2.0], force=lambda t, q, u: -2 * w * w * q)  # the same spring as an explicit force
    wild = cd.integrate(loose, q=(1.0,), u=(0.0,), step=2.1 / w, until=1.0)
    assert np.abs(wild.q).max() > 1e6


def test_free_vibration_is_of_second_order():
    # u'' + 2 d u' + w^2 u = 0: q = exp(-d t)(cos v t + d/v sin v t), v^2 = w^2 - d^2.
    w, d = 3.0, 0.4
    v = math.sqrt(w * w - d * d)
    system = cd.System(inertia=[1.0], stiffness=[w * w], damping=[2 * d])
    exact = math.exp(-d * 2) * (math.cos(v * 2) + d / v * math.sin(v * 2))
    errors = [
        abs(cd.integrate(system, (1.0,), (0.0,), step=h, until=2.0).q[-1, 0] - exact) for h in 0.1 / 2 ** np.arange(4)
    ]
    assert orders(errors)[-1] == pytest.approx(2.0, abs=0.05)


def test_midpoint_solves_its_implicit_equations(rng):
    # Naive twin: A (u_f - u_i) = h [F - K (q_i + q_f)/2 - C (u_i + u_f)/2] with q_f = q_i + h (u_i + u_f)/2 as one
    # linear system for (q_f, u_f), and the ledger from it.
    n, h = 4, 0.3
    roots = rng.normal(size=(3, n, n))
    a, k, c = (r @ r.T + np.eye(n) for r in roots)
    rest, force, q, u = rng.normal(size=(4, n))
    system = cd.System(inertia=a, stiffness=50 * k, damping=c, rest=rest, force=lambda t, q, u: force)
    step = cd.schemes.midpoint(system, system.start(q, u), h)
    one = np.eye(n)
    matrix = np.block([[one, -h / 2 * one], [h * 25 * k, a + h / 2 * c]])
    right = np.concatenate([q + h / 2 * u, a @ u + h * (force - 50 * k @ (q / 2 - rest) - c @ u / 2)])
    q_f, u_f = np.split(np.linalg.solve(matrix, right), 2)
    assert np.allclose(step.state.q, q_f, rtol=0, atol=1e-10) and np.allclose(step.state.u, u_f, rtol=0, atol=1e-10)
    stretch = (q + q_f) / 2 - rest
    work = h * (force - 50 * k @ stretch - c @ (u + u_f) / 2) @ (u + u_f) / 2
    assert step.force_work == pytest.approx(work, rel=1e-9)


def test_stiffness_is_a_force_for_the_other_schemes():
    k = np.array([[3.0, -1.0], [-1.0, 2.0]])
    floor = cd.Constraint(lambda t, q: q[0] + 0.5)
    stated = cd.System(inertia=[1.0, 2.0], stiffness=k, damping=[0.1, 0.0], rest=(0.2, 0.1), constraints=[floor])
    written = cd.System(
        inertia=[1.0, 2.0],
        force=lambda t, q, u: -k @ (q - (0.2, 0.1)) - np.array([0.1, 0.0]) * u,
        constraints=[floor],
    )
    one, other = (cd.integrate(s, (0, 0), (-1, 0.5), step=0.01, until=1.0, scheme="inel") for s in (stated, written))
    assert np.allclose(one.q, other.q, rtol=0, atol=1e-13)
    one, other = (cd.events.integrate(s, (0, 0), (-1, 0.5), until=1.0) for s in (stated, written))
    assert np.allclose(one.q, other.q, rtol=0, atol=1e-9)


# ---- bars and beams --------------------------------------------------------------------------------------------------


def test_frequencies_of_a_free_bar():
    # k pi c / L for k = 0, 1, 2, ...; linear elements, lumped: (2 c/dx) sin(k pi / 2N) (discrete dispersion).
    n, c = 40, 3.0
    a, k = cd.elastic.bar(length=2.0, mass=0.7, wave_speed=c, elements=n)
    frequencies, shapes = cd.elastic.modes(a, k, 6)
    expected = 2 * c / (2.0 / n) * np.sin(np.arange(6) * math.pi / (2 * n))
    assert np.allclose(frequencies, expected, rtol=1e-9, atol=1e-6)
    assert np.allclose(shapes.T @ a @ shapes, np.eye(6), rtol=0, atol=1e-10)
    consistent = cd.elastic.bar(length=2.0, mass=0.7, wave_speed=c, elements=n, lumped=False)
    assert cd.elastic.modes(*consistent, 2)[0][1] == pytest.approx(math.pi * c / 2, rel=1e-3)


def test_frequencies_of_a_free_beam():
    # w = (b L)^2 sqrt(E I / (m L^3)), cos(bL) cosh(bL) = 1: bL = 4.730041, 7.853205; two motions without deformation.
    a, k = cd.elastic.beam(length=2.0, mass=3.0, bending=5.0, elements=20)
    frequencies, shapes = cd.elastic.modes(a, k, 4)
    unit = math.sqrt(5.0 / (3.0 * 8.0))
    assert frequencies[:2].tolist() == [0.0, 0.0]
    assert np.allclose(frequencies[2:], np.array([4.730041, 7.853205]) ** 2 * unit, rtol=3e-5)
    assert np.allclose(shapes.T @ a @ shapes, np.eye(4), rtol=0, atol=1e-9)
    assert a[::2, ::2].sum() == pytest.approx(3.0, rel=1e-12)
    # A cantilever bent by a force at its end: P L^3 / (3 E I), exact for Hermite elements.
    assert np.linalg.solve(k[2:, 2:], np.eye(len(k) - 2)[-2])[-2] == pytest.approx(8.0 / 15.0, rel=1e-9)


def struck(elements, courant=1.0, friction=0.0, slide=0.0, until=3.0):
    """The bar of length, mass, wave speed 1 that strikes the ground with speed 1: A, undeformed nodes, motion."""
    a, k = cd.elastic.bar(length=1.0, mass=1.0, wave_speed=1.0, elements=elements)
    n = elements + 2
    inertia, stiffness, frame = np.zeros((n, n)), np.zeros((n, n)), np.zeros((2, n))
    inertia[0, 0], inertia[1:, 1:], stiffness[1:, 1:] = 1.0, a, k
    frame[0, 1] = frame[1, 0] = 1.0
    rest = np.concatenate([[0.0], np.linspace(0, 1, elements + 1)])
    ground = cd.Constraint(lambda t, q: q[1], contact_map=lambda t, q: frame, law=cd.Law(friction=friction))
    bar = cd.System(inertia=inertia, stiffness=stiffness, rest=rest, constraints=[ground])
    u = np.append(slide, -np.ones(elements + 1))
    return a, rest[1:], cd.integrate(bar, rest, u, step=courant / elements, until=until)


def test_dalembert_satisfies_the_wave_equation_and_its_conditions():
    s = np.linspace(0, 1, 11)
    shift, speed = impacting_bar(s, 2.5, length=1.0, wave_speed=1.0, speed=2.0)
    assert np.allclose(shift, 2.0 * 0.5) and np.allclose(speed, 2.0)  # left at t = 2, undeformed, with the speed v
    shift, _ = impacting_bar(s, 1.0, length=1.0, wave_speed=1.0, speed=2.0)
    assert np.allclose(shift, -2.0 * s)  # compressed by v/c everywhere, at rest
    for t in (0.3, 0.9, 1.4):
        assert impacting_bar(0.0, t, length=1.0, wave_speed=1.0, speed=2.0)[0] == 0.0
        small = 1e-4  # stress-free upper end
        ends = impacting_bar(np.array([1 - small, 1.0]), t, length=1.0, wave_speed=1.0, speed=2.0)[0]
        assert abs(ends[1] - ends[0]) < 1e-12
        # velocity is the derivative of the displacement
        later, now = (impacting_bar(s, t + d, length=1.0, wave_speed=1.0, speed=2.0)[0] for d in (1e-6, -1e-6))
        v = impacting_bar(s, t, length=1.0, wave_speed=1.0, speed=2.0)[1]
        away = np.minimum(abs(s - t), abs(2 - s - t)) > 1e-3
        assert np.allclose(((later - now) / 2e-6)[away], v[away], atol=1e-8)


def test_impacting_bar_converges_to_dalembert():
    # Orders: a scheme of order 2 carries a front that is in H^s, s < 1/2, with h^(2 s / 3), so 1/3 for the velocity
    # (Brenner, Thomee, Wahlbin 1975); the energy of the node that strikes, lost in its inelastic impact, is a share
    # 1/(2N) of all: order 1. The rebound misses what is left in the tail of the front.
    speeds, rebounds, losses, times = [], [], [], []
    for n in (20, 40, 80, 160):
        a, rest, motion = struck(n)
        exact = [impacting_bar(rest, t, length=1.0, wave_speed=1.0, speed=1.0)[1] for t in motion.times]
        speeds.append(np.sqrt(((motion.u[:, 1:] - exact) ** 2).mean(axis=1)).mean())
        rebounds.append(1 - a.sum(axis=0) @ motion.u[-1, 1:])
        losses.append(-motion.ledger.contact_work[:, 0, 0].sum() / 0.5)
        times.append((np.nonzero(motion.impulses[:, 0, 0])[0][-1] + 1) / n)
        assert np.abs(motion.ledger.closure).max() < 1e-14
        # Momentum: the impulse of the ground is the change of the mean velocity.
        assert motion.impulses[:, 0, 0].sum() == pytest.approx(2 - rebounds[-1], rel=1e-12)
    assert np.mean(orders(speeds)) == pytest.approx(1 / 3, abs=0.05)
    assert np.mean(orders(rebounds)) == pytest.approx(2 / 3, abs=0.1) and rebounds[-1] < 0.015
    assert np.mean(orders(losses)) == pytest.approx(1.0, abs=0.05) and losses[-1] < 1 / 160
    assert times[-1] == pytest.approx(2.0, abs=0.02)
    # In the middle of the contact the force is that of the plane wave, (m / L) c v = 1.
    middle = (motion.times[1:] > 0.3) & (motion.times[1:] < 1.7)
    assert motion.impulses[middle, 0, 0] / motion.step == pytest.approx(1.0, abs=5e-3)


@pytest.mark.parametrize("courant", [1.0, 8.0, 64.0, 512.0])
def test_any_step_is_stable(courant):
    _, _, motion = struck(40, courant=courant, until=max(3.0, 5 * courant / 40))
    energy = motion.ledger.kinetic + motion.ledger.potential
    # Never more than at the start; a step in which the foot leaves and comes back may gain, U_n^- P / 2 (2004, eq. 50).
    assert energy.max() == energy[0] and energy[-1] > 0
    free = motion.impulses[:, 0, 0] == 0
    assert np.abs(np.diff(energy)[free]).max(initial=0.0) < 1e-11


def test_friction_takes_its_share_during_the_impact():
    # Normal force 1 for the time 2: a sliding bar loses 2 gamma of its horizontal speed; a slower one stops at w/gamma,
    # after w^2/(2 gamma).
    _, _, fast = struck(80, friction=0.3, slide=1.0)
    assert fast.u[-1, 0] == pytest.approx(1 - 0.3 * fast.impulses[:, 0, 0].sum(), rel=1e-12)
    assert fast.u[-1, 0] == pytest.approx(1 - 0.6, abs=0.3 * 0.03)
    _, _, slow = struck(80, friction=0.3, slide=0.3)
    assert abs(slow.u[-1, 0]) < 1e-14 and slow.q[-1, 0] == pytest.approx(0.15, abs=0.003)
    stopped = slow.times[np.nonzero(np.abs(slow.u[:, 0]) < 1e-14)[0][0]]
    assert stopped == pytest.approx(1.0, abs=0.03)


def test_modal_bar_against_the_event_driven_reference():
    # Five modes of the bar, amplitudes as freedoms: contact dynamics against the exact motion of the same freedoms,
    # which touches the ground many times. Order 1 in the step.
    a, k = cd.elastic.bar(length=1.0, mass=1.0, wave_speed=1.0, elements=40)
    frequencies, shapes = cd.elastic.modes(a, k, 5)
    foot = shapes[0]
    ground = cd.Constraint(lambda t, q: foot @ q, gradient=lambda t, q: foot)
    bar = cd.System(inertia=np.ones(5), stiffness=frequencies**2, constraints=[ground])
    start = -shapes.T @ a.sum(axis=0)  # velocity -1 everywhere
    exact = cd.events.integrate(bar, np.zeros(5), start, until=2.6)
    rebound = shapes.T @ a.sum(axis=0) @ exact.u[-1]
    assert 0.7 < rebound < 1.0 and exact.completed
    counts = (130, 145, 160, 180, 1040, 1160, 1280, 1440)
    errors = [
        np.abs(cd.integrate(bar, np.zeros(5), start, step=2.6 / n, until=2.6).q[-1] - exact.q[-1]).max() for n in counts
    ]
    assert math.log(np.mean(errors[:4]) / np.mean(errors[4:]), 8) == pytest.approx(1.0, abs=0.35)


# ---- wrong input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"stiffness": [[1.0, 2.0], [0.0, 1.0]]}, "symmetric"),
        ({"stiffness": [1.0, -1.0]}, "semidefinite"),
        ({"stiffness": np.ones((2, 3))}, "shape"),
        ({"damping": [[np.nan, 0], [0, 1]]}, "finite"),
        ({"stiffness": [1.0, 1.0], "kinematics": lambda q, u, h: q}, "kinematics"),
        ({"stiffness": [1.0, 1.0, 1.0]}, "3 rows but u has 2"),
        ({"stiffness": [1.0, 1.0], "rest": [0.0]}, "rest position has 1"),
        ({"damping": "soft"}, "numbers"),
    ],
)
def test_wrong_elasticity_is_told(options, sentence):
    with pytest.raises(cd.InputError, match=sentence):
        cd.System(inertia=[1.0, 1.0], **options).start((0, 0), (0, 0))


def test_wrong_bars_are_told():
    with pytest.raises(cd.InputError, match="wave_speed"):
        cd.elastic.bar(length=1.0, mass=1.0, wave_speed=-1.0, elements=4)
    with pytest.raises(cd.InputError, match="elements"):
        cd.elastic.beam(length=1.0, mass=1.0, bending=1.0, elements=0)
    with pytest.raises(cd.InputError, match="from 1 to 5"):
        cd.elastic.modes(*cd.elastic.bar(length=1.0, mass=1.0, wave_speed=1.0, elements=4), 9)
    with pytest.raises(cd.InputError, match="not positive definite"):
        cd.elastic.modes(np.ones((3, 3)), np.eye(3), 2)


@pytest.mark.parametrize("setting", ["elements=4", "speed=0", "friction=-1", "courant=no"])
def test_experiment_refuses_nonsense(setting, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["run", "elastic-bar", "--set", setting, "--out", str(tmp_path / "out")])
    assert end.value.code == 2 and "give" in capsys.readouterr().err


COARSE = ["elements=32", "friction=0", "slide=0"]
OTHER = ["elements=40", "courant=0.5", "speed=3", "wave_speed=100", "mass=2"]


@pytest.mark.parametrize("settings", [COARSE, OTHER])
def test_experiment_takes_options(settings, tmp_path, capsys):
    sets = [part for setting in settings for part in ("--set", setting)]
    with pytest.raises(SystemExit) as end:
        main(["run", "elastic-bar", "--quick", *sets, "--out", str(tmp_path / "out")])
    assert end.value.code == 0, capsys.readouterr().out
