"""Trial 9: a point on a vibrating table with friction: a circle, an attracting half-line, a conveyor.

1986, section 15, plates 11 to 13. The report works in the frame of the table, q, with the algorithm of section 12 and
the forces of inertia. With O at d(t) and the rotation R(t) by the angle phi(t) about a fixed unit vector n, all exact
for finite angles,

    q'' = R^T (g - d'') - phi'' n x q - phi'^2 n x (n x q) - 2 phi' n x q' + reaction.

The same motions are computed in the fixed frame with the table as a driven boundary. There the velocity of the table
is the displacement of its particle during the coming step, divided by h: a point at rest then follows the table
exactly. For a translation the two formulations differ by the second difference quotient of d in place of d'', that is
by O(h^2); with a rotation the frames of the two velocities of a step enter too, and they differ by O(h).

Plate 11 (uniform circular translation of radius a): the relative motion tends to a circle of radius
r = sqrt((a w^2)^2 - (gamma g)^2) / w^2. The algorithm's own limit is also a circle: with U its speed,
|(U + gamma g h) exp(i w h) - U| = h a w^2 and r_h = U h / (2 tan(w h / 2)) = r - gamma g h / (2 w) + O(h^2). The start
and the step are not printed: the point starts at O at rest on the table; ``steps_per_period`` sets the step.
Plate 12: "J initial: 6" is read as a start at the sixth of the 26 steps of a period, near the extreme of the rotation.
Plate 13: sense of the eccentric positive or negative about Ox; no correction of violation and no anticipation (with the
correction the lines of attraction would be sharper than the report says, and lie at 101 and 68).
"""

import math
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.problem.laws import Law
from contactdynamics.state import STICKING
from contactdynamics.systems.motion import Motion, integrate
from contactdynamics.systems.system import Constraint, System

FIGURE = "1986, plates 11, 12 and 13"
PARAMETERS = Options(
    steps_per_period=Option(500, "time steps per period of the table, plate 11", least=16, most=100_000),
    starts=Option(10, "starting points on plate 13, for each sense of the eccentric", least=1, most=1000),
)
QUICK = {"steps_per_period": 100, "starts": 4}

UP = np.array([0.0, 0.0, 1.0])
NOTHING = (0.0, 0.0, 0.0)
SENSES = {"negative": -0.5, "positive": 0.5}  # plate 13: amplitude in COS of the origin
EARLIER, LATER = slice(-500, -250), slice(-250, None)  # plate 13: two times five periods
BETWEEN_FRAMES = {"plate_11": (50, 100), "plate_12": (26, 52)}  # steps per period


@dataclass(frozen=True)
class Table:
    """A table in periodic motion: origin cosine cos wt + sine sin wt, rotation vector rotation sin wt."""

    frequency: float  # Hz
    gravity: tuple
    law: Law
    cosine: tuple = NOTHING
    sine: tuple = NOTHING
    rotation: tuple = NOTHING

    @property
    def pulsation(self) -> float:
        return 2 * math.pi * self.frequency

    @property
    def axis(self) -> tuple[float, np.ndarray]:
        """Amplitude of the rotation and its unit vector."""
        size = math.sqrt(sum(c * c for c in self.rotation))
        return size, np.array(self.rotation) / size if size else UP

    def origin(self, t: float) -> np.ndarray:
        """d(t)."""
        wt = self.pulsation * t
        return np.array(self.cosine) * math.cos(wt) + np.array(self.sine) * math.sin(wt)

    def turn(self, t: float) -> np.ndarray:
        """R(t), by Rodrigues' formula."""
        size, n = self.axis
        phi = size * math.sin(self.pulsation * t)
        cross = np.array([[0, -n[2], n[1]], [n[2], 0, -n[0]], [-n[1], n[0], 0]])
        return np.eye(3) + math.sin(phi) * cross + (1 - math.cos(phi)) * cross @ cross

    def place(self, t: float, q) -> np.ndarray:
        """Position in the fixed frame of the particle q of the table."""
        return self.origin(t) + self.turn(t) @ q

    def velocity(self, t: float, x) -> np.ndarray:
        """Velocity of the table's particle at x in the fixed frame."""
        w, (size, n) = self.pulsation, self.axis
        drift = w * (np.array(self.sine) * math.cos(w * t) - np.array(self.cosine) * math.sin(w * t))
        return drift + size * w * math.cos(w * t) * np.cross(n, x - self.origin(t))

    def inertia_force(self):
        """F(t, q, u) in the frame of the table, in plain floats for speed."""
        w, (size, n) = self.pulsation, self.axis
        nx, ny, nz = n.tolist()
        shaken = list(zip(self.gravity, self.cosine, self.sine, strict=True))

        def force(t, q, u):
            c, s = math.cos(w * t), math.sin(w * t)
            gx, gy, gz = (g + w * w * (a * c + b * s) for g, a, b in shaken)
            (x, y, z), (ux, uy, uz) = q.tolist(), u.tolist()
            phi, rate, rise = size * s, size * w * c, -size * w * w * s
            cp, sp = math.cos(phi), math.sin(phi)
            along = (1 - cp) * (nx * gx + ny * gy + nz * gz) - rate * rate * (nx * x + ny * y + nz * z)
            # n x (sin(phi) G + phi'' q + 2 phi' u), the three cross products in one
            bx, by, bz = (sp * g + rise * p + 2 * rate * v for g, p, v in ((gx, x, ux), (gy, y, uy), (gz, z, uz)))
            return (
                cp * gx + along * nx + rate * rate * x - (ny * bz - nz * by),
                cp * gy + along * ny + rate * rate * y - (nz * bx - nx * bz),
                cp * gz + along * nz + rate * rate * z - (nx * by - ny * bx),
            )

        return force


def ride(table: Table, q, steps: int, periods: int, first: int = 0) -> Motion:
    """The motion in the frame of the table from rest at q (section 12), starting at the step ``first`` of a period."""
    wall = Constraint(gap=lambda t, q: q[2], gradient=lambda t, q: UP, law=table.law)
    system = System(inertia=[1.0, 1.0, 1.0], force=table.inertia_force(), constraints=[wall])
    return _from_rest(system, q, NOTHING, table, steps, periods, first, "wall_friction")


def ride_in_fixed_frame(table: Table, q, steps: int, periods: int, first: int = 0) -> np.ndarray:
    """The same motion in the fixed frame with a driven boundary; its positions relative to the table (N+1, 3)."""
    step = 1 / (table.frequency * steps)

    def axes(t, x):
        return table.turn(t).T[[2, 0, 1]]

    def driven(t, x):
        particle = table.turn(t).T @ (x - table.origin(t))
        return axes(t, x) @ (x - table.place(t + step, particle)) / step

    def gap(t, x):
        return table.turn(t)[:, 2] @ (x - table.origin(t)) - 1e-9  # so that rounding does not open the contact

    wall = Constraint(gap=gap, contact_map=axes, boundary=driven, law=table.law)
    weight = np.array(table.gravity)
    system = System(inertia=[1.0, 1.0, 1.0], force=lambda t, x, u: weight, constraints=[wall])
    begin = first * step
    x = table.place(begin, q)
    motion = _from_rest(system, x, table.velocity(begin, x), table, steps, periods, first, "midpoint")
    return np.array([table.turn(t).T @ (x - table.origin(t)) for t, x in zip(motion.times, motion.q, strict=True)])


def _from_rest(system, q, u, table, steps, periods, first, scheme) -> Motion:
    """Integrate from a state of static friction."""
    step = 1 / (table.frequency * steps)
    start = system.start(q, u, first * step)._replace(status=np.array([STICKING]))
    return integrate(system, start=start, step=step, until=first * step + periods / table.frequency, scheme=scheme)


CIRCULAR = Table(
    3.183099, (0.0, 0.0, -981.0), Law(friction=0.4, static_friction=0.6), cosine=(5.0, 0.0, 0.0), sine=(0.0, 5.0, 0.0)
)
ROCKING = Table(10.0, (0.0, 0.0, -981.0), Law(friction=0.4), rotation=(0.0, -0.04, 0.04))


def conveyor(amplitude: float) -> Table:
    """The table of plate 13."""
    gravity = (220.677, 0.0, -955.8571)
    return Table(10.0, gravity, Law(friction=0.4), cosine=(0.0, amplitude, 0.0), rotation=(0.01, 0.0, 0.0))


def build(parameters):
    """Motions of the three plates, longer ones of plate 12, and plate 13 in a frame at rest."""
    starts = np.linspace(5, 130, parameters["starts"])
    return {
        "plate_11": ride(CIRCULAR, NOTHING, parameters["steps_per_period"], 30),
        "plate_12": [ride(ROCKING, (1.5, y, 0.0), 26, 15, first=6) for y in range(-12, 0)],
        "plate_12_long": [ride(ROCKING, (1.5, y, 0.0), 26, 60, first=6) for y in (-12, -8, -4)],
        "plate_13": {
            sense: [ride(conveyor(amplitude), (0.0, y, 0.0), 50, 50) for y in starts]
            for sense, amplitude in SENSES.items()
        },
        "plate_13_fixed": {
            sense: ride_in_fixed_frame(conveyor(amplitude), (0.0, 88.0, 0.0), 50, 50)
            for sense, amplitude in SENSES.items()
        },
        "between_frames": {
            "plate_11": [difference(CIRCULAR, NOTHING, n, 12, 0) for n in BETWEEN_FRAMES["plate_11"]],
            "plate_12": [difference(ROCKING, (1.5, -3.0, 0.0), n, 15, 6 * n // 26) for n in BETWEEN_FRAMES["plate_12"]],
        },
    }


def difference(table: Table, q, steps: int, periods: int, first: int) -> tuple[float, float]:
    """Largest distance in the plane of the table between the motions in its frame and in the fixed one, and the same
    relative to the largest displacement from the start."""
    moving = ride(table, q, steps, periods, first).q[:, :2]
    fixed = ride_in_fixed_frame(table, q, steps, periods, first)[:, :2]
    distance = float(np.hypot(*(moving - fixed).T).max())
    return distance, distance / float(np.hypot(*(moving - moving[0]).T).max())


def check(outcome, parameters):
    """The three plates of the report, and the table against the frame that moves with it."""
    first, rows = plate_11(outcome["plate_11"], parameters["steps_per_period"])
    second, more = plate_12(outcome["plate_12"], outcome["plate_12_long"])
    third, rest = plate_13(outcome["plate_13"], outcome["plate_13_fixed"])
    rows = [*rows, *more, *rest]
    results = {"plate_11": first, "plate_12": second, "plate_13": third}
    for key, (orders, least, most) in {"plate_11": ("2", 1.8, 2.2), "plate_12": ("1 or more", 0.8, 2.2)}.items():
        (coarse, relative), (fine, _) = outcome["between_frames"][key]
        order, steps = math.log2(coarse / fine), BETWEEN_FRAMES[key]
        results[key]["between_frames"] = dict(zip(map(str, steps), (coarse, fine), strict=True))
        results[key]["between_frames_order"] = order
        name = key.replace("_", " ")
        rows += [
            Row(
                f"{name}: table and fixed frame, relative difference", None, relative, relative < 0.03, "own reference"
            ),
            Row(f"{name}: order of their difference in the step", orders, order, least < order < most, "closed form"),
        ]
    return Verdict(results, rows)


def plate_11(motion: Motion, steps: int) -> tuple[dict, list[Row]]:
    """The radius of the limiting circle against the exact one and that of the algorithm."""
    w, a = CIRCULAR.pulsation, CIRCULAR.cosine[0]
    grip, h = CIRCULAR.law.friction * -CIRCULAR.gravity[2], motion.step
    exact = math.sqrt((a * w * w) ** 2 - grip**2) / w**2
    turning = 2 * (1 - math.cos(w * h))
    speed = (math.sqrt((grip * h) ** 2 + 4 * ((h * a * w * w) ** 2 - (grip * h) ** 2) / turning) - grip * h) / 2
    discrete = speed * h / (2 * math.tan(w * h / 2))
    last = motion.q[-steps:, :2]
    centre = last.mean(axis=0)
    distances = np.hypot(*(last - centre).T)
    radius, first_order = float(distances.mean()), grip * h / (2 * w)
    results = {
        "radius": radius,
        "exact": exact,
        "discrete": discrete,
        "relative_error": radius / exact - 1,
        "centre": centre,
        "out_of_round": float(np.ptp(distances)),
    }
    rows = [
        Row("plate 11: radius of the circle (exact)", exact, radius, abs(radius - exact) < 1.2 * first_order,
            "closed form"),
        Row("plate 11: radius (closed form of the algorithm)", discrete, radius, abs(radius - discrete) < 1e-6,
            "closed form"),
        Row("plate 11: the path becomes a circle, out of round", 0, results["out_of_round"],
            results["out_of_round"] < 1e-6, "published"),
    ]  # fmt: skip
    return results, rows


def plate_12(motions: list[Motion], long: list[Motion]) -> tuple[dict, list[Row]]:
    """Rest near O, circular paths, an attracting half-line, contact lost far from x = 0."""
    radii = [np.hypot(*m.q.T[:2]) for m in motions]
    ratios = [float(r.min() / r[0]) for r in radii] + [float(r.max() / r[0]) for r in radii]
    angles = [np.unwrap(np.arctan2(m.q[:, 1], m.q[:, 0])) for m in motions]
    turned = [float(a[-1] - a[0]) for a in angles]
    at_rest = float(np.abs(motions[-1].q - motions[-1].q[0]).max())
    ends = [m.q[-26:].mean(axis=0)[:2] for m in long]
    floating = np.concatenate([m.q[1:][m.impulses[:, 0, 0] == 0] for m in motions])
    lift_off = -ROCKING.gravity[2] / (0.04 * ROCKING.pulsation**2)
    first_x = float(floating[floating[:, 2] > 1e-3, 0].min(initial=math.inf))
    advance = np.concatenate([np.hypot(*np.diff(m.q[::26, :2], axis=0).T) for m in motions])
    away = np.concatenate([m.q[:-26:26, 0] for m in motions])
    correlation = float(np.corrcoef(away, advance)[0, 1])
    results = {
        "ends": [m.q[-1] for m in motions],
        "turned": turned,
        "radius_ratios": [min(ratios), max(ratios)],
        "rest_displacement": at_rest,
        "ends_after_60_periods": ends,
        "highest": max(float(m.q[:, 2].max()) for m in motions),
        "lift_off_least_x": first_x,
        "lift_off_exact_x": lift_off,
        "speed_correlation": correlation,
    }
    rows = [
        Row("plate 12: displacement of the start nearest to O", "rest", at_rest, at_rest < 0.01, "published"),
        Row("plate 12: least and largest radius over initial", "nearly circular", [min(ratios), max(ratios)],
            min(ratios) > 0.9 and max(ratios) < 1.2, "published"),
        Row("plate 12: least angle turned away from x = 0, y < 0", "> 0 (repulsion)", min(turned[:-1]),
            min(turned[:-1]) > 0, "published"),
        Row("plate 12: ends after 60 periods, x", "0", [float(x) for x, _ in ends], all(abs(x) < 0.5 for x, _ in ends),
            "published"),
        Row("plate 12: ends after 60 periods, y", "> 0", [float(y) for _, y in ends], all(y > 2 for _, y in ends),
            "published"),
        Row("plate 12: correlation of advance per period and x", "faster away from x = 0", correlation,
            correlation > 0.9, "published"),
        Row("plate 12: contact lost from x (g / 0.04 w^2)", lift_off, first_x,
            0.9 * lift_off < first_x < 1.2 * lift_off, "closed form"),
    ]  # fmt: skip
    return results, rows


def plate_13(senses: dict, fixed: dict) -> tuple[dict, list[Row]]:
    """The lines of attraction for both senses of the eccentric, in the frame of the table and in the fixed frame."""
    results, rows = {}, []
    for sense, motions in senses.items():
        earlier, later = (np.array([m.q[part, 1].mean() for m in motions]) for part in (EARLIER, LATER))
        means = (earlier + later) / 2
        results[sense] = {
            "attraction": lines(np.sort(means[np.abs(later - earlier) < 2])),
            "attraction_in_fixed_frame": float(fixed[sense][-500:, 1].mean()),
            "mean_y_of_the_last_10_periods": means,
            "ends": [m.q[-1] for m in motions],
        }
    if len(senses["positive"]) >= QUICK["starts"]:  # fewer starts do not reach all lines
        rows = [
            attraction_row(f"near {y:g}, sense {sense}", y, nearest(results[sense]["attraction"], y))
            for sense, y in (("negative", 0.0), ("negative", 103.0), ("positive", 70.0))
        ]
        least = float(min(results["positive"]["mean_y_of_the_last_10_periods"]))
        rows.append(
            Row("plate 13: least y reached from y = 5, positive", "repelled from 0", least, least > 20, "published")
        )
    rows += [
        attraction_row(f"near {y:g}, fixed frame", y, results[sense]["attraction_in_fixed_frame"])
        for sense, y in (("negative", 103.0), ("positive", 70.0))
    ]
    return results, rows


def attraction_row(name: str, printed: float, computed: float) -> Row:
    """A line of attraction, read from a drawing: within 2 units."""
    return Row(f"plate 13: line of attraction {name}", printed, computed, abs(computed - printed) < 2, "published")


def lines(values: np.ndarray) -> list[float]:
    """Means of the groups of sorted values that lie more than 10 apart."""
    groups = np.split(values, np.flatnonzero(np.diff(values) > 10) + 1)
    return [float(group.mean()) for group in groups if len(group)]


def nearest(values: list[float], wanted: float) -> float:
    """The value nearest to the wanted one."""
    return min(values, key=lambda v: abs(v - wanted), default=math.nan)


def figure(outcome, parameters):
    """The three plates."""
    return {
        "figure": figure_13(outcome["plate_13"]),
        "plate_11": figure_11(outcome["plate_11"], parameters["steps_per_period"]),
        "plate_12": figure_12(outcome["plate_12"]),
    }


def figure_11(motion: Motion, steps: int):
    """Plate 11: the path that becomes a circle."""
    drawing, ax = plt.subplots(figsize=(7, 8), layout="constrained")
    results, _ = plate_11(motion, steps)
    x, y = motion.q[: 12 * steps + 1, :2].T
    ax.plot(x, y, "k-", lw=0.8, label="path on the table, 12 periods")
    turn = np.linspace(0, 2 * math.pi, 361)
    circle = results["centre"] + results["exact"] * np.column_stack([np.cos(turn), np.sin(turn)])
    ax.plot(*circle.T, color="tab:orange", ls="--", lw=1.2, label=f"exact circle, radius {results['exact']:.4f}")
    ax.plot(x[::steps], y[::steps], "k.", ms=4, label="every period")
    ax.set(aspect="equal", xlabel="x", ylabel="y", title=f"plate 11: computed radius {results['radius']:.4f}")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.02, 1.0))
    return drawing


def figure_12(motions: list[Motion]):
    """Framing of the caption: y to the right, x downwards, z upwards from a line 10 mm (2 units) below the edge."""
    drawing, ax = plt.subplots(figsize=(10, 8.4), layout="constrained")
    left, right, top, bottom = -15.27041, 15.22799, -4.292476, 20.22183
    for motion in motions:
        x, y, z = motion.q.T
        ax.plot(y, x, "k-", lw=0.7)
        ax.plot(y, top + 2 - z, "k-", lw=0.5)
        ax.plot(y[0], x[0], "k.", ms=3)
    ax.axhline(0, color="0.7", lw=0.6, zorder=0)
    ax.axvline(0, color="0.7", lw=0.6, zorder=0)
    ax.axhline(top + 2, color="0.7", lw=0.6, zorder=0)
    ax.text(right - 0.3, top + 1.8, "z = 0", ha="right", fontsize=8)
    ax.set(aspect="equal", xlim=(left, right), ylim=(bottom, top), xlabel="y", ylabel="x",
           title="plate 12: 12 starts, 15 periods; above, projection on yOz")  # fmt: skip
    return drawing


def figure_13(senses: dict):
    """Both senses of the eccentric; y to the right, x downwards, above each the projection on yOz."""
    drawing, axes = plt.subplots(2, 1, figsize=(11, 16), layout="constrained")
    for ax, (sense, motions) in zip(axes, senses.items(), strict=True):
        for motion in motions:
            x, y, z = motion.q.T
            ax.plot(y, x, "k-", lw=0.5)
            ax.plot(y, -6 - z, "k-", lw=0.4)
        ax.axhline(0, color="0.7", lw=0.6, zorder=0)
        ax.axhline(-6, color="0.7", lw=0.6, zorder=0)
        ax.text(-4.5, -6.6, "z = 0", fontsize=8)
        ax.set(aspect="equal", xlim=(-5, 140), ylim=(92, -14), xlabel="y", ylabel="x",
               title=f"plate 13: eccentric turning in the {sense} sense about Ox, 50 periods")  # fmt: skip
    return drawing
