"""Isotropic compression without walls: fraction and coordination of random packings.

Disks of two sizes (1 and 1.4, as many of each) or equal spheres are compressed from a gas in a periodic cell by an
isotropic stress, until they rest. Without friction a packing of rigid grains is isostatic: 2 d contacts per grain that
carries, and the fractions 0.84 (O'Hern et al. 2003) and 0.639 (Agnolin and Roux 2007). With friction 0.3 in the
compression spheres come to a looser state (Agnolin and Roux 2007: 0.593 and 4.5 for their way of assembly, a slow
compression of a gas; it depends on the assembly, while the frictionless state does not).
"""

import matplotlib.pyplot as plt

from contactdynamics import packings
from contactdynamics.experiments._granular import compressed, measured, sample
from contactdynamics.experiments.runner import Option, Options, Row, Verdict, recorded

FIGURE = "Agnolin and Roux 2007: fraction and coordination of isotropic packings"
PARAMETERS = Options(
    dimension=Option(2, "2: disks of two sizes, 3: equal spheres", least=2, most=3),
    grains=Option(500, "in the cell", least=40, most=100_000),
    friction=Option(0.0, "friction coefficient during the compression", "1", least=0, most=10),
    seed=Option(1, "of the gas", least=0, most=10**9),
    tolerance=Option(1e-4, "to which steps are solved", "1", least=1e-8, most=1e-2),
    tolerances=Option([1e-2, 1e-3], "of further packings: how z - 2 d falls", "1", least=1e-8, most=0.1),
    step=Option(0.1, "time step over sqrt(m / P)", "1", least=1e-3, most=0.5),
)  # fmt: skip
QUICK = {"grains": 60, "tolerances": [1e-2], "tolerance": 1e-3}
KNOWN = {(2, False): (0.84, 4.0, 0.012), (3, False): (0.639, 6.0, 0.01), (3, True): (0.593, 4.5, 0.015)}


def build(parameters):
    """The packing asked for, recorded, and those at other tolerances."""
    d = int(parameters["dimension"])
    sizes = packings.Sieve.two(1.0, 1.4) if d == 2 else packings.Sieve.uniform(1.0, 1.0)

    def one(tolerance):
        scene, unit = sample(parameters, dimension=d, sizes=sizes, friction=parameters["friction"])
        sim, found = compressed(scene, unit, parameters, tolerance=tolerance)
        return sim, found, measured(sim) | {"tolerance": tolerance, "still": bool(found)}

    others = [one(tolerance)[2] for tolerance in parameters["tolerances"]]
    sim, found, own = one(parameters["tolerance"])
    with recorded(sim, until=sim.time + sim.time_step):
        sim.step()
    return {"own": own, "others": others, "reason": found.reason, "frame": sim.frame(), "stress": found.stress}


def check(outcome, parameters):
    """Against the published state, and the asked stress."""
    own, d = outcome["own"], int(parameters["dimension"])
    stress = outcome["stress"].diagonal()
    rows = [Row("stress over what was asked", 1.0, float(stress.mean() / 100), bool(abs(stress / 100 - 1).max() < 0.02),
                "identity")]  # fmt: skip
    known = KNOWN.get((d, parameters["friction"] > 0))
    few = 0.5 / parameters["grains"] ** 0.5  # of a finite sample
    if known and parameters["friction"] in (0.0, 0.3):
        phi, z, width = known
        rows += [
            Row(f"packing fraction, within {width + few:.3f}", phi, own["packing_fraction"],
                abs(own["packing_fraction"] - phi) <= width + few, "published"),
            Row("contacts per grain that carries, within 0.2 (0.5 with friction)", z, own["coordination"],
                abs(own["coordination"] - z) <= (0.2 if parameters["friction"] == 0 else 0.5), "published"),
        ]  # fmt: skip
    excess = [[run["tolerance"], run["coordination"] - 2 * d] for run in [*outcome["others"], own]]
    results = own | {"grains": parameters["grains"], "seeds": 1, "reason": outcome["reason"], "excess": excess}
    return Verdict(results, rows)


def figure(outcome, parameters):
    """The packing with its forces, and the excess of contacts over 2 d against the tolerance."""
    d = int(parameters["dimension"])
    runs = sorted([*outcome["others"], outcome["own"]], key=lambda run: run["tolerance"])
    figure = plt.figure(figsize=(10, 4.6), layout="constrained")
    if d == 2:
        from contactdynamics.plotting import plot_scene

        plot_scene(outcome["frame"], figure.add_subplot(1, 2, 1), forces=True)
    ax = figure.add_subplot(1, 2, 2)
    ax.semilogx(
        [run["tolerance"] for run in runs], [run["coordination"] - 2 * d for run in runs], "o-", label="computed"
    )
    ax.axhline(0.0, color="0.5", ls="--", label="isostatic, without friction")
    ax.set(xlabel="tolerance", ylabel="contacts per grain that carries, less 2 d",
           title=f"fraction {outcome['own']['packing_fraction']:.3f}, {parameters['grains']} grains")  # fmt: skip
    ax.legend(frameon=False)
    return figure
