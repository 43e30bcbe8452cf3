"""The rocking block: what the impact of its other corner does, by Moreau's projection, with friction and by Newton.

2004, section 7.4. A rectangular block turns about one lower corner, A, until the other one, B, hits the floor. Newton's
rule, applied to both contacts, never lets A leave. Moreau's law treats them together: a slender block goes on turning
about B, a squat one stops. Finite-freedom engine, one step for the impact and a whole motion with many of them.

With s = height / width, m = 1: the block before impact turns about A. Without friction, u+ is the projection of u- on
{U_A >= 0, U_B >= 0} in the kinetic metric: the angular velocity is multiplied by (s^2 - 2)/(s^2 + 4), or 0 for s below
sqrt 2. With friction gamma the corner B slides if gamma < 3 s / (4 s^2 + 1), and the ratio is
(s^2 - 2 + 3 gamma s)/(s^2 + 4 - 3 gamma s); otherwise it sticks, with Housner's (2 s^2 - 1)/(2 (s^2 + 1)).
"""

import math

import matplotlib.pyplot as plt
import numpy as np

import contactdynamics as cd
from contactdynamics.experiments.runner import Option, Options, Row, Verdict

FIGURE = "2004, section 7.4 (no figure)"
PARAMETERS = Options(
    slenderness=Option(3.0, "height over width of the block", "1", least=0.01, most=100),
    friction=Option(0.7, "friction coefficient", "1", least=0, most=1e6),
    tilt=Option(0.6, "tilt at the release of the motion, over the angle of tipping over", "1", above=0, below=1),
    step=Option(1e-3, "time step; the width is 1 m", "s", least=1e-6, most=0.02),
    grid=Option(41, "slendernesses at which the impact is computed", least=2, most=10_000),
)
QUICK = {"step": 2e-3, "grid": 13}

GRAVITY = 9.81
FRICTIONS = (0.0, 0.2, 0.4, 2.0)  # curves of the figure
LOWERED = 1e-9  # the block starts this deep in the floor, so that rounding cannot open a contact


def block(slenderness, friction, gravity=0.0, restitution=0.0):
    """The block, width 1, as a `System`: q = (x, y, angle) of its centre; contacts at the corners A (left) and B."""

    def corner(side):
        lever = np.array([side / 2, -slenderness / 2])

        def arm(q):
            c, s = math.cos(q[2]), math.sin(q[2])
            return c * lever[0] - s * lever[1], s * lever[0] + c * lever[1]

        def contact_map(t, q):
            x, y = arm(q)
            return [[0.0, 1.0, x], [1.0, 0.0, -y]]

        law = cd.Law(friction=friction, restitution=restitution)
        name = "corner A" if side < 0 else "corner B"
        return cd.Constraint(lambda t, q: q[1] + arm(q)[1], contact_map=contact_map, law=law, name=name)

    return cd.System(
        inertia=[1.0, 1.0, (1 + slenderness**2) / 12],
        force=lambda t, q, u: (0.0, -gravity, 0.0),
        potential=lambda t, q: gravity * q[1],
        constraints=[corner(-1), corner(1)],
    )


def about_a(slenderness):
    """Velocity of a block that turns about A at the rate -1, so that B comes down."""
    return np.array([slenderness / 2, -0.5, -1.0])


def impact(slenderness, friction, step=1e-9):
    """One impact of the upright block, turning about A: the `Step`."""
    system = block(slenderness, friction)
    start = system.start((0.0, slenderness / 2 - LOWERED, 0.0), about_a(slenderness))
    return cd.schemes.midpoint(system, start, step)


def formula(slenderness, friction):
    """Angular velocity after the impact over that before."""
    s = slenderness
    if s <= math.sqrt(0.5):
        return 0.0
    if friction >= 3 * s / (4 * s * s + 1):
        return (2 * s * s - 1) / (2 * (s * s + 1))
    return max(0.0, (s * s - 2 + 3 * friction * s) / (s * s + 4 - 3 * friction * s))


def newton(slenderness, restitution):
    """Newton's rule at each contact, U+ = -rho U- without friction: ratio, and the impulses (A, B) it needs."""
    normals = np.array([[0.0, 1.0, -0.5], [0.0, 1.0, 0.5]])
    inverse = np.diag([1.0, 1.0, 12 / (1 + slenderness**2)])
    u = about_a(slenderness)
    p = np.linalg.solve(normals @ inverse @ normals.T, -(1 + restitution) * (normals @ u))
    return float((u + inverse @ normals.T @ p)[2] / u[2]), p


def build(parameters):
    """The impact asked for, those over the slenderness for several frictions, and a whole motion."""
    s, friction = parameters["slenderness"], parameters["friction"]
    slender = np.linspace(0.3, 6, parameters["grid"])
    return {
        "impact": impact(s, friction),
        "slender": slender,
        "curves": {g: np.array([ratio_of(impact(each, g)) for each in slender]) for g in (*FRICTIONS, friction)},
        "newton": {rho: newton(s, rho) for rho in (0.0, 0.5)},
        "motion": rocking(s, parameters),
    }


def ratio_of(step):
    """Angular velocity after the step over -1, that before; no -0."""
    return float(-step.state.u[2]) + 0.0


def rocking(slenderness, parameters):
    """A whole motion, from rest at a tilt about A, with friction that does not slip."""
    tip = math.atan(1 / slenderness)
    angle, arm = parameters["tilt"] * tip, math.hypot(1, slenderness) / 2
    stretch = math.sqrt((1 + slenderness**2) / 3 / (GRAVITY * arm))  # time on which a rocking block falls
    height = slenderness / 2 * math.cos(angle) + math.sin(angle) / 2  # of the centre, with A on the floor
    start = (0.0, height - LOWERED, angle)
    return cd.integrate(block(slenderness, 5.0, GRAVITY), q=start, u=(0, 0, 0), step=parameters["step"] * stretch,
                        until=12 * stretch)  # fmt: skip


def measured_impacts(motion):
    """Ratios of the angular velocity at the impacts of a motion: steps in which the block passes the upright."""
    ratios = []
    for i in np.flatnonzero(np.diff(np.sign(motion.q[:, 2])) != 0):
        before, after = motion.u[max(0, i - 3), 2], motion.u[min(len(motion.u) - 1, i + 4), 2]
        if abs(before) > 0.05 * np.abs(motion.u[:, 2]).max():
            ratios.append(float(after / before))
    return ratios


def check(outcome, parameters):
    """The impact of the other corner against the formulas, for all slendernesses and frictions."""
    s, friction = parameters["slenderness"], parameters["friction"]
    ratio, expected = ratio_of(outcome["impact"]), formula(s, friction)
    deviation = max(
        np.abs(curve - [formula(each, g) for each in outcome["slender"]]).max()
        for g, curve in outcome["curves"].items()
    )
    rows = [
        Row("angular velocity after / before", expected, ratio, abs(ratio - expected) < 1e-7, "closed form"),
        Row("deviation over all slendernesses and frictions", 0.0, deviation, deviation < 1e-7, "closed form"),
    ]
    for rho, (back, impulses) in outcome["newton"].items():
        pulls = ", pulls at A" if impulses[0] < 0 else ""
        rows.append(Row(f"Newton's rule at both corners, rho = {rho:g}: A never leaves", -rho, f"{back:.3g}{pulls}",
                        abs(back + rho) < 1e-12, "closed form"))  # fmt: skip
    impacts = measured_impacts(outcome["motion"])
    housner = formula(s, 5.0)
    if housner > 0.3 and impacts:
        rows.append(Row("whole motion, no slip: ratio at the first impact", housner, impacts[0],
                        abs(impacts[0] - housner) < 0.03, "closed form"))  # fmt: skip
    elif housner == 0:
        swing = float(-outcome["motion"].q[:, 2].min())
        rows.append(Row("whole motion: it stops at the first impact; swing to the other side", 0.0, swing,
                        swing < 0.02, "closed form"))  # fmt: skip
    results = {
        "ratio": ratio,
        "formula": expected,
        "critical_slenderness_frictionless": math.sqrt(2),
        "friction_to_stick": 3 * s / (4 * s * s + 1),
        "newton": {f"{rho:g}": back for rho, (back, _) in outcome["newton"].items()},
        "newton_impulse_at_a": {f"{rho:g}": float(p[0]) for rho, (_, p) in outcome["newton"].items()},
        "impacts_of_the_motion": impacts,
    }
    return Verdict(results, rows)


def figure(outcome, parameters):
    """Speeds after impact over the slenderness, and the angle over time."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    fine = np.linspace(0.3, 6, 600)
    for k, g in enumerate(FRICTIONS):
        name = "no slip (Housner)" if g >= 1 else f"γ = {g:g}"
        left.plot(fine, [formula(s, g) for s in fine], color=f"C{k}", lw=1)
        left.plot(outcome["slender"], outcome["curves"][g], "o", ms=4, color=f"C{k}", label=name)
    left.axhline(0, color="0.5", lw=0.8)
    left.plot(fine, np.zeros_like(fine), "k--", lw=1.2, label="Newton's rule at both corners, ρ = 0")
    left.plot(parameters["slenderness"], ratio_of(outcome["impact"]), "k*", ms=11, label="the options of this run")
    left.set(xlabel="slenderness, height / width", ylabel="angular velocity after / before",
             title="impact of a rocking block (lines: closed forms)", ylim=(-0.08, 1.0))  # fmt: skip
    left.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.46, 0.5))
    motion = outcome["motion"]
    right.plot(motion.times, np.degrees(motion.q[:, 2]), "k", lw=1)
    right.axhline(0, color="0.5", lw=0.8)
    right.set(xlabel="t, s (block 1 m wide, g = 9.81)", ylabel="angle, degrees",
              title=f"whole motion without slip, s = {parameters['slenderness']:g}")  # fmt: skip
    return figure
