"""A block on a tilted plane: it sticks below the angle of friction and slides above it, and does not creep.

The angle at which it begins to slide is found by bisection: a block that is left at rest on the plane for some steps
either stays or has the speed g (sin a - gamma cos a) t. Coulomb's law says atan(gamma). Soft contacts, or friction that
is regularised, let it creep below that angle, by 2e-5 to 5e-3 m/s in common engines; here a contact that sticks has no
velocity at all, and what the block has moved after a long time is printed.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics.experiments.runner import Option, Options, Row, Verdict, recorded
from contactdynamics.rigid.simulation import Simulation
from contactdynamics.scenes.scene import Scene
from contactdynamics.scenes.shapes.balls import Plane
from contactdynamics.scenes.shapes.polyhedra import Box

FIGURE = "none; Coulomb 1785"
PARAMETERS = Options(
    friction=Option(0.6, "friction coefficient", "1", least=0.01, most=5),
    size=Option((0.5, 0.4, 0.1), "edges of the block", "m", above=0, numbers=(3,)),
    turned=Option(20.0, "angle by which it is turned on the plane", "degrees", least=-360, most=360),
    rest=Option(100.0, "time for which it is left below the angle of friction", "s", least=1, most=1e5),
    below=Option(0.01, "by so much below it, of the angle", "1", above=0, below=1),
    step=Option(1e-3, "time step", "s", least=1e-5, most=0.01),
)
QUICK = {"rest": 5.0}

GRAVITY, TRIAL = 9.81, 20  # m/s^2; steps of a trial


def on_slope(parameters, angle) -> Simulation:
    """The block at rest on a plane, in whose axes gravity is tilted by ``angle`` (rad)."""
    scene = Scene(gravity=(GRAVITY * math.sin(angle), 0.0, -GRAVITY * math.cos(angle)))
    scene.material("stone", density=2000.0)
    scene.contact("stone", "stone", friction=parameters["friction"])
    scene.add(Plane((0, 0, 1)), material="stone", fixed=True)
    half = math.radians(parameters["turned"]) / 2
    scene.add(Box(parameters["size"]), material="stone", position=(0, 0, parameters["size"][2] / 2),
              rotation=(math.cos(half), 0, 0, math.sin(half)))  # fmt: skip
    return Simulation(scene, time_step=parameters["step"], tolerance=1e-9, max_iterations=5000, on_failure="ignore")


def speed(parameters, angle) -> float:
    """The speed along the slope after some steps from rest."""
    sim = on_slope(parameters, angle)
    for _ in range(TRIAL):
        sim.step()
    return float(sim.velocities[1, 0])


def expected(parameters, angle) -> float:
    """That of Coulomb's law."""
    return max(0.0, GRAVITY * (math.sin(angle) - parameters["friction"] * math.cos(angle)) * TRIAL * parameters["step"])


def build(parameters):
    """The angle at which the block begins to slide, its speeds around it, and its creep below it."""
    critical = math.atan(parameters["friction"])
    low, high = 0.9 * critical, min(1.1 * critical, 0.5 * math.pi)
    while high - low > 1e-8:
        middle = 0.5 * (low + high)
        # it slides where it has half the speed that it would have an accuracy of 1e-8 above the angle of friction
        moves = speed(parameters, middle) > 0.5 * expected(parameters, critical + 1e-8)
        low, high = (low, middle) if moves else (middle, high)
    angles = critical * np.linspace(0.9, 1.1, 21)
    measured = np.array([speed(parameters, angle) for angle in angles])
    sim = on_slope(parameters, (1 - parameters["below"]) * critical)
    start, moved, times = sim.positions[1], [], []
    with recorded(sim, until=parameters["rest"]):
        while sim.time < parameters["rest"] - 0.5 * sim.time_step:
            sim.step()
            if sim.steps % 100 == 0 or sim.steps < 100:
                times.append(sim.time)
                moved.append(float(np.abs(sim.positions[1] - start).max()))
    return {"angle": 0.5 * (low + high), "critical": critical, "angles": angles, "speeds": measured,
            "times": np.array(times), "moved": np.array(moved)}  # fmt: skip


def check(outcome, parameters):
    """Angle and speeds against Coulomb's law, and no creep."""
    error = outcome["angle"] - outcome["critical"]
    exact = np.array([expected(parameters, angle) for angle in outcome["angles"]])
    off = float(np.abs(outcome["speeds"] - exact).max())
    creep = float(outcome["moved"][-1] / outcome["times"][-1])
    results = {
        "angle_degrees": math.degrees(outcome["angle"]),
        "expected_degrees": math.degrees(outcome["critical"]),
        "error_radians": error,
        "speed_error": off,
        "moved_metres": float(outcome["moved"][-1]),
        "creep_metres_per_second": creep,
    }
    rows = [
        Row("angle at which it slides, degrees", math.degrees(outcome["critical"]), math.degrees(outcome["angle"]),
            abs(error) <= 1e-6, "closed form"),
        Row("largest error of the speed above and below it, m/s", 0.0, off, off <= 1e-6, "closed form"),
        Row(f"moved in {parameters['rest']:g} s below it, m", 0.0, float(outcome["moved"][-1]),
            outcome["moved"][-1] <= 1e-9, "closed form"),
    ]  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, parameters):
    """Speed against the angle, and the creep over time."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    degrees = np.degrees(outcome["angles"])
    left.plot(degrees, [expected(parameters, angle) for angle in outcome["angles"]], "k-", lw=1, label="Coulomb's law")
    left.plot(degrees, outcome["speeds"], "o", mfc="none", color="C0", label=f"computed, {TRIAL} steps from rest")
    left.axvline(
        math.degrees(outcome["angle"]),
        color="C3",
        lw=1,
        ls="--",
        label=f"slides from {math.degrees(outcome['angle']):.6f}°",
    )
    left.set(xlabel="slope, degrees", ylabel="speed, m/s")
    left.legend(fontsize=8, framealpha=1.0)
    right.loglog(outcome["times"], np.maximum(outcome["moved"], 1e-20), "k-", label="computed")
    for creep, style in ((2e-5, ":"), (5e-3, "--")):
        right.loglog(
            outcome["times"], creep * outcome["times"], style, color="C3", lw=1, label=f"a creep of {creep:g} m/s"
        )
    right.set(xlabel="time, s", ylabel="moved, m", ylim=(1e-20, 1.0))
    right.set_title(f"{parameters['below']:.0%} below the angle of friction")
    right.legend(fontsize=8, framealpha=1.0)
    return figure
