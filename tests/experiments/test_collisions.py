"""Collisions (2004, 7.3 to 8.2): two balls, rows, superballs, and energy that restitution with friction creates."""

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contactdynamics as cd
from contactdynamics.cli import main
from contactdynamics.errors import EnergyWarning
from contactdynamics.experiments import _balls as balls
from contactdynamics.experiments import _rod as rods

# Two balls with W = diag(1, 1 + k) W_n. The law of 7.5 on U^a: P_n = (1 + rho)|U_n| / W_n. Let x = W_n P_t. The mean
# tangential velocity is proportional to (1 + tau) U_t + (1 + k) x, and Coulomb asks: it vanishes with |x| <= gamma
# W_n P_n, or x = -gamma W_n P_n times its sign. So x is -(1 + tau) U_t / (1 + k), clipped to [-limit, limit]; and
# U_t^+ = U_t + (1 + k) x. (Walton 1993 in another form.)


def walton(tangential, normal, rho, tau, gamma, k):
    limit = gamma * (1 + rho) * -normal
    x = np.clip(-(1 + tau) * tangential / (1 + k), -limit, limit)
    return np.array([tangential + (1 + k) * x, -rho * normal])


OPTIONS = {
    "rho": st.floats(0, 1),
    "tau": st.floats(-1, 1),
    "gamma": st.floats(0, 2),
    "ratio": st.floats(0.01, 100),
    "tangential": st.floats(-10, 10),
    "normal": st.floats(-10, -0.01),
}


@settings(max_examples=40)
@given(**OPTIONS)
def test_two_spheres_follow_the_law(rho, tau, gamma, ratio, tangential, normal):
    law = {"restitution": rho, "tangential_restitution": tau, "friction": gamma}
    outgoing, _, energy = balls.collide([[tangential, normal]], mass_ratio=ratio, **law)
    expected = walton(tangential, normal, rho, tau, gamma, 2.5)
    scale = max(abs(tangential), abs(normal))
    assert np.abs(outgoing[0] - expected).max() < 1e-10 * scale
    assert np.abs(balls.formula((tangential, normal), rho, tau, gamma)[0] - expected).max() < 1e-12 * scale
    assert energy <= 1 + 1e-12  # round bodies never gain


@settings(max_examples=40)
@given(**OPTIONS)
def test_two_disks_of_the_finite_freedom_engine(rho, tau, gamma, ratio, tangential, normal):
    # Two disks, q = (x, y, angle) each, the second to the right of the first: k = m r^2 / I = 2.
    r1, r2 = 1.0, math.sqrt(ratio)
    gap = lambda t, q: q[3] - q[0] - r1 - r2  # noqa: E731
    rows = [[-1, 0, 0, 1, 0, 0], [0, -1, -r1, 0, 1, -r2]]
    law = cd.Law(restitution=rho, tangential_restitution=tau, friction=gamma)
    pair = cd.System(
        inertia=[1, 1, r1**2 / 2, ratio, ratio, ratio * r2**2 / 2],
        constraints=[cd.Constraint(gap, contact_map=lambda t, q: rows, law=law)],
    )
    start = pair.start([0, 0, 0, r1 + r2, 0, 0], [0, 0, 0, normal, tangential, 0])
    u = cd.schemes.midpoint(pair, start, 1e-6).state.u
    outgoing = (np.array(rows) @ u)[::-1]
    expected = walton(tangential, normal, rho, tau, gamma, 2.0)
    assert np.abs(outgoing - expected).max() < 1e-10 * max(abs(tangential), abs(normal))


def test_a_row_of_balls_of_any_length():
    # v - w = rho at the first contact, the others stay shut, w + (N - 1) v = 1.
    for count, rho in ((2, 0.3), (3, 1.0), (7, 0.5)):
        v = balls.row(count, rho)
        assert np.allclose(v[1:], (1 + rho) / count, atol=1e-10) and math.isclose(v[0], (1 + rho) / count - rho)
    assert abs((balls.row(4, 1.0) ** 2).sum() - 1) < 1e-10  # rho = 1 keeps the energy, and is no Newton's cradle


def test_elastic_balls_with_gaps_make_newtons_cradle():
    assert np.allclose(balls.row(4, 1.0, gap=0.01, duration=0.2), [0, 0, 0, 1], atol=1e-12)
    hertz = balls.hertz_row(4)
    assert abs(hertz.sum() - 1) < 1e-8 and abs((hertz**2).sum() - 1) < 1e-6 and 0.95 < hertz[-1] < 1


def test_superball_returns_from_under_the_table():
    # kappa = 5/2: floor v = 3/7, table -31/49, floor -333/343 (Garwin 1969).
    assert np.allclose(balls.superball_formula([1, -1, 1]), [3 / 7, -31 / 49, -333 / 343], atol=1e-14)
    # The lever arm ends halfway in the overlap, at most h v / 2 deep with v about 4.5 m/s, r = 0.03 m: relative 75 h.
    for h in (4e-4, 1e-4):
        assert abs(balls.superball(2.0, True, 0.3, step=h)[2][2] + 333 / 343) < 75 * h


# ---- energy created --------------------------------------------------------------------------------------------------


def bar_motion(rho, gamma=0.5, tilt=52.0, heading=28.0, gravity=0.0):
    angle, v = math.radians(tilt), math.radians(heading)
    u = (math.sin(v), -math.cos(v), 0.0)
    return cd.integrate(rods.rod(cd.Law(restitution=rho, friction=gamma), gravity), step=1e-4, until=0.01,
                        q=(0, math.sin(angle) + 0.005, angle), u=u)  # fmt: skip


def test_a_bar_that_gains_is_told_once_with_amount_and_step():
    with pytest.warns(EnergyWarning) as told:
        motion = bar_motion(1.0)
    assert len(told) == 1
    gained = motion.ledger.kinetic[-1] - motion.ledger.kinetic[0]
    created = motion.ledger.created
    assert gained > 0.05 and math.isclose(created.sum(), gained) and (created > 0).sum() == 1
    step = int(np.argmax(created)) + 1
    for words in (f"created {gained:.3g} J", f"in step {step} at t = {motion.times[step]:.6g}", "restitution"):
        assert words in str(told[0].message)
    # Stuck at U_t^+ = 0 with U_n^+ = -U_n^-: the gain is U_t^- P_t / 2, P = W^-1 (U^+ - U^-).
    i = step - 1
    tip = np.array([[0, 1, -math.cos(motion.q[i, 2])], [1, 0, math.sin(motion.q[i, 2])]]) @ motion.u[i]
    p = np.linalg.solve(rods.delassus(motion.q[i, 2]), [-2 * tip[0], -tip[1]])
    assert math.isclose(gained, tip[1] * p[1] / 2, rel_tol=1e-6)


def test_nothing_is_told_where_nothing_is_created():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not bar_motion(0.0).ledger.created.any()
        assert not bar_motion(0.0, gravity=30.0).ledger.created.any()
        assert not bar_motion(0.5, gravity=30.0).ledger.created.any()
        assert not bar_motion(1.0, gamma=0.0).ledger.created.any()


@pytest.mark.parametrize("engine", ["run", "step"])
def test_a_scene_that_gains(engine):
    scene = cd.Scene(gravity=(0, 0))
    scene.material("m", density=1.0)
    scene.contact("m", "m", friction=0.5, restitution=1.0)
    scene.add(cd.HalfPlane((0, 1)), material="m", fixed=True)
    angle = math.radians(52)
    arm = np.array([math.cos(angle), math.sin(angle)])
    bar = cd.Cluster([0.01] * 5, np.linspace(-1, 1, 5)[:, None] * arm)
    scene.add(bar, material="m", mass=1.0, inertia=1 / 3, position=(0, arm[1] + 0.02), velocity=(0.5, -1))
    sim = cd.Simulation(scene, time_step=1e-4, tolerance=1e-8)
    before = sim.energy.kinetic
    with pytest.warns(EnergyWarning, match=r"in step 10\d at t = 0.010") as told:
        if engine == "step":
            for _ in range(150):
                sim.step()
        else:
            sim.run(until=0.015, progress=False)
    assert len(told) == 1
    assert sim.energy.created > 0.05 and math.isclose(sim.energy.created, sim.energy.kinetic - before, rel_tol=1e-9)


# ---- the experiment --------------------------------------------------------------------------------------------------


def run(tmp_path, *settings):
    """The summary of a quick run of the experiment."""
    arguments = [part for setting in settings for part in ("--set", setting)]
    with pytest.raises(SystemExit) as end:
        main(["run", "collision", "--quick", "--out", str(tmp_path / "out"), *arguments])
    return end.value.code, json.loads(
        Path(tmp_path / "out" / "summary.json").read_text()
    ) if not end.value.code else None


def test_the_options_of_the_experiment(tmp_path):
    short = "grid=3", "angles=5", "count=3", "hopping=0.5"
    code, summary = run(tmp_path / "one", "incoming=1,-1", "friction=0.1", "restitution=0.8", "mass_ratio=3", *short)
    assert code == 0 and np.allclose(summary["results"]["outgoing"], walton(1, -1, 0.8, 0.4, 0.1, 2.5), atol=1e-10)
    code, summary = run(
        tmp_path / "two", "incoming=-0.5,-2", "tangential_restitution=-0.3", "bar_restitution=0.5", *short
    )
    assert code == 0 and np.allclose(summary["results"]["outgoing"], walton(-0.5, -2, 0.5, -0.3, 0.2, 2.5), atol=1e-10)
    assert summary["results"]["bar_warning"] is None


@pytest.mark.parametrize(
    "setting, words",
    [
        ("incoming=1", "2 numbers"),
        ("incoming=1,1", "separates"),
        ("mass_ratio=0", "mass_ratio"),
        ("restitution=1.5", "restitution"),
        ("friction=-1", "friction"),
        ("tangential_restitution=2", "tangential_restitution"),
        ("count=1", "count"),
    ],
)
def test_wrong_options_of_the_experiment(tmp_path, capsys, setting, words):
    assert run(tmp_path, setting)[0] == 2
    assert words in capsys.readouterr().err
