"""A disk rolls down a slope, or slips where friction is small.

This first line is the title that `cdyn run` prints. The file is a whole experiment: change it and run it again.

    cdyn run FILE                        figures, summary.json and run.h5 in results/NAME
    cdyn run FILE --set friction=0.05    with another option; `cdyn options FILE` lists them
    cdyn plot results/NAME/run.h5        what happened, from the file
"""

import math

import contactdynamics as cd
from contactdynamics.experiments.runner import Option, Options, Row, Verdict

FIGURE = "none"  # the figure of a paper that is reproduced, in a few words

# The options: default, meaning, unit ("1": a pure number), and what is possible (above, least, below, most).
PARAMETERS = Options(
    slope_degrees=Option(10.0, "slope of the ground", "degrees", least=0, most=60),
    friction=Option(0.3, "friction coefficient", "1", least=0, most=10),
    radius=Option(0.1, "radius of the disk", "m", least=0.01, most=1),
    step=Option(1e-3, "time step", "s", least=1e-5, most=0.01),
    duration=Option(1.0, "simulated time", "s", least=0.1, most=10),
)
QUICK = {"duration": 0.3}  # values of the short form, `cdyn run FILE --quick`

GRAVITY = 9.81  # m/s²


def build(parameters):
    """The experiment. A simulation that is returned is run to `duration` and recorded into run.h5.

    Anything else may be returned too, such as a motion by `cd.integrate`, or a dict of several: it is what `check` and
    `figure` get.
    """
    slope = math.radians(parameters["slope_degrees"])
    normal = (math.sin(slope), math.cos(slope))  # the ground falls to the right
    scene = cd.Scene(gravity=(0, -GRAVITY))
    scene.material("wood", density=600)  # kg/m²: in the plane, of a slice 1 m thick
    scene.contact("wood", "wood", friction=parameters["friction"])
    scene.add(cd.HalfPlane(normal), material="wood", fixed=True)
    start = [parameters["radius"] * component for component in normal]  # it touches the ground at the origin
    scene.add(cd.Disk(parameters["radius"]), material="wood", position=start)
    return cd.Simulation(scene, time_step=parameters["step"])


def expected(parameters):
    """The way down the slope (m), in closed form: I = m r²/2, so that a disk that rolls has 2/3 of the acceleration."""
    slope = math.radians(parameters["slope_degrees"])
    rolling = 2 / 3 * math.sin(slope)
    slipping = math.sin(slope) - parameters["friction"] * math.cos(slope)
    return 0.5 * GRAVITY * max(rolling, slipping) * parameters["duration"] ** 2


def check(outcome, parameters):
    """Numbers for summary.json, and the rows of the table: what is measured, expected, computed, and whether it agrees.

    `cdyn run` ends with exit code 0 only where every row agrees.
    """
    x, y = outcome.body(1).position
    way = math.hypot(x - parameters["radius"] * math.sin(math.radians(parameters["slope_degrees"])),
                     y - parameters["radius"] * math.cos(math.radians(parameters["slope_degrees"])))  # fmt: skip
    bound = 2 * GRAVITY * parameters["step"] * parameters["duration"]  # a step's fall, all the way
    rows = [
        Row("way down the slope, m", expected(parameters), way, abs(way - expected(parameters)) <= bound, "closed form")
    ]
    return Verdict({"way": way, "energy": outcome.energy.kinetic}, rows)


def figure(outcome, parameters):
    """A matplotlib figure, or a dict of them by name."""
    return outcome.plot().figure
