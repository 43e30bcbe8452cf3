"""The thinnest semicircular barrel vault: by limit analysis, held from rest, and what falls first.

Rows of stones with their joints in bond. A row alone is the arch of Couplet and Milankovitch (0.1075 of the radius,
`arch-thickness`). In bond, the hinges of a row meet the middle of the stones beside it: forces exist that hold a
thinner vault, if the rows were squeezed together. Whether they are is a matter of the forces that a solver begins with.
"""

from contactdynamics.experiments import _thinnest as thinnest
from contactdynamics.experiments import arch_thickness, dome
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.scenes import packings

FIGURE = "none; Milankovitch 1907"
PARAMETERS = Options(
    voussoirs=Option(16, "stones of a row", least=6, most=100),
    rows=Option(4, "rows of stones", least=1, most=60),
    bond=Option(True, "whether the joints of every other row are shifted by half a stone"),
    **thinnest.options("vault"),
)
QUICK = {"voussoirs": 10, "rows": 2, "accuracy": 0.1, "hold": 0.4, "falling": 0.8}

MILANKOVITCH = 0.1075


def make(parameters, ratio, rows=None):
    """The vault of a thickness over the radius, in a scene of its own."""
    scene = thinnest.stone_scene(parameters["friction"])
    add(scene, parameters, ratio, rows)
    return scene


def add(scene, parameters, ratio, rows=None) -> packings.Vault:
    """A vault whose thickness is ``ratio`` of its radius, of so many ``rows``."""
    rows = parameters["rows"] if rows is None else rows
    return packings.vault(scene, material="stone", span=2 * thinnest.RADIUS, thickness=ratio * thinnest.RADIUS,
                          voussoirs=parameters["voussoirs"], length=0.5 * thinnest.RADIUS * rows, rows=rows,
                          bond=bool(parameters["bond"]))  # fmt: skip


def build(parameters):
    """The limits of a row and of the vault, the thinnest that is held, and the fall of a thinner one."""
    p = parameters
    row = thinnest.limit(lambda ratio: make(p, ratio, 1), 0.01, 0.6, 0.1 * p["accuracy"])
    bound = thinnest.limit(lambda ratio: make(p, ratio), 0.01, 0.6, 0.1 * p["accuracy"])
    found, trials = thinnest.held(lambda ratio: make(p, ratio), bound, p)
    built = add(thinnest.stone_scene(p["friction"]), p, bound)
    place = [int(n) - int(built.stones[built.rows == r][0]) + 1 for n, r in zip(built.stones, built.rows, strict=True)]
    names = {
        int(n): f"stone {k} of {int((built.rows == r).sum())} in row {r + 1}"
        for n, k, r in zip(built.stones, place, built.rows, strict=True)
    }
    falling = thinnest.fall(lambda ratio: make(p, ratio), p["thin"] * bound, names, p)
    return {"row": row, "limit": bound, "held": found, "trials": trials, "fall": falling}


def check(outcome, parameters):
    """A row against the five hinges of an arch, what is held against the limit, and that a thinner one falls."""
    p, row, bound, found, falling = parameters, outcome["row"], outcome["limit"], outcome["held"], outcome["fall"]
    hinges = arch_thickness.by_hinges(p["voussoirs"])
    results = {
        "thickness_ratio": found,
        "limit_ratio": bound,
        "limit_ratio_of_a_row": row,
        "hinges_ratio": hinges,
        "stones": len(falling.names),
    } | falling.results()
    rows = [
        Row("one row by limit analysis, five hinges by statics", hinges, row,
            abs(row / hinges - 1) < 1e-3 + 0.2 * p["accuracy"], "own reference"),
        Row("limit of the vault, not above that of a row", f"<= {row:.4f}", bound,
            bound <= row * (1 + 0.2 * p["accuracy"]), "own reference"),
        Row("held from rest, between the two", f"{bound:.4f} to {row:.4f}", found,
            bound * (0.97 - p["accuracy"]) <= found <= row * (1.03 + p["accuracy"]), "own reference"),
        thinnest.falls(falling, p["thin"], bound),
    ]  # fmt: skip
    return Verdict(results, rows)


def figure(outcome, parameters):
    """The vault as it falls, and the trials."""
    word = f"Milankovitch, {MILANKOVITCH}"
    return dome.draw(outcome, parameters, word, MILANKOVITCH, azimuth=-65.0, elevation=18.0)
