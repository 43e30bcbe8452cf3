"""Wrong input to the finite-freedom engine: refused at the door, in one sentence that says what came and what to do."""

import contextlib
import math

import numpy as np
import pytest

import contactdynamics as cd
from contactdynamics.errors import ConvergenceError, ConvergenceWarning


@contextlib.contextmanager
def refused(*words):
    """The block must raise an `InputError` of one sentence that contains the words."""
    with pytest.raises(cd.InputError) as caught:
        yield
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    for word in words:
        assert word in message, message


def height(t, q):
    return q[1]


def particle(*constraints, **options):
    options = {"inertia": [1.0, 1.0], "force": lambda t, q, u: (0.0, -10.0), "constraints": constraints} | options
    return cd.System(**options)


def run(system, **options):
    options = {"q": (0.0, 1.0), "u": (1.0, 0.0), "step": 0.01, "until": 0.6} | options
    return cd.integrate(system, **options)


FLOOR = cd.Constraint(height)
ROUGH = cd.Constraint(height, law=cd.Law(friction=0.5))


# ---- the gap ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_gap_not_finite_at_the_start(value):
    with refused("gap of constraint 0", f"returned {value}", "t = 0", "q = [0.0, 1.0]", "finite number"):
        run(particle(cd.Constraint(lambda t, q: value)))


def test_gap_not_finite_later():
    # sqrt of the height: not defined below the floor; told with the instant and the name of the constraint.
    wall = cd.Constraint(lambda t, q: math.nan if t > 0.3 else q[1], name="left wall")
    with refused("constraint 0 (left wall)", "nan", "t = 0.305", "finite number"):
        run(particle(wall))


@pytest.mark.parametrize("value", [None, "a", np.zeros(2), np.zeros(1), 1j, [1.0]])
def test_gap_not_a_number(value):
    with refused("gap of constraint 0 returned", repr(value), "one real number"):
        run(particle(cd.Constraint(lambda t, q: value)))


def test_start_inside_the_forbidden_region():
    with refused("forbidden region of constraint 1", "gap -0.5", "all gaps are >= 0", "sign"):
        run(particle(FLOOR, cd.Constraint(lambda t, q: q[1] - 1.5)))
    # The depth counts, not the gap's own scale: a depth of 1e-9 is rounding, also when the gap is steep.
    run(particle(cd.Constraint(lambda t, q: 1e6 * (q[1] - 1 - 1e-9))), until=0.05)


def test_gradient_zero_at_contact():
    # Gap = height^3 has no normal where it is touched.
    with refused("gradient of constraint 0", "zero", "t = 0.005", "does not vanish"):
        run(particle(cd.Constraint(lambda t, q: q[1] ** 3)), q=(0.0, 0.0))


# ---- inertia, force, initial values -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "inertia, words",
    [
        ([1.0, 0.0], ["not positive definite", "eigenvalue 0", "positive mass"]),
        ([1.0, -2.0], ["not positive definite", "eigenvalue -2", "positive mass"]),
        ([[1.0, 2.0], [2.0, 1.0]], ["not positive definite", "eigenvalue -1"]),
        ([[1.0, 0.5], [0.0, 1.0]], ["symmetric", "A = A^T"]),
        ([1.0, math.nan], ["finite"]),
        (2.0, ["shape ()", "(n, n)", "(n,)"]),
        ([[1.0, 0.0]], ["shape (1, 2)", "square"]),
        ([], ["shape (0, 0)", "square"]),
        ("heavy", ["inertia is 'heavy'", "numbers"]),
        ([1.0, 1.0, 1.0], ["3 x 3", "2 components"]),
        (lambda t, q: [1.0, -q[1]], ["not positive definite", "eigenvalue -1"]),
    ],
)
def test_inertia(inertia, words):
    with refused(*words):
        run(particle(inertia=inertia))


def test_inertia_that_rounding_makes_definite(rng):
    # B^T B with fewer rows than columns is singular; what rounding leaves of its smallest eigenvalue has either sign.
    for n in range(2, 7):
        for _ in range(10):
            b = rng.normal(size=(n - 1, n)) * 10 ** rng.uniform(-3, 3, size=n)
            with refused("not positive definite", "positive mass"):
                cd.System(inertia=b.T @ b)


def test_light_and_heavy_freedoms_are_no_rounding():
    # masses 1e-9 and 1e9, linked: A = [[m, c], [c, M]] is definite as long as c^2 < m M
    size = np.sqrt([1e-9, 1e9])
    for share in (0.0, 0.9, 1 - 1e-6):
        system = cd.System(inertia=[[1e-9, share], [share, 1e9]])
        a, inverse = system.inertias(0.0, np.zeros(2))
        product = (a @ inverse) / size[:, None] * size  # in units of each freedom; condition 2 / (1 - share)
        assert np.allclose(product, np.eye(2), rtol=0, atol=32 * np.finfo(float).eps / (1 - share))


def test_inertia_that_degenerates_later():
    with refused("not positive definite", "eigenvalue"):
        run(particle(inertia=lambda t, q: np.diag([1.0, q[1]]), constraints=()))


@pytest.mark.parametrize("force", [lambda t, q, u: (0.0,), lambda t, q, u: None, lambda t, q, u: (0.0, math.nan)])
def test_force_at_the_start(force):
    with refused("force(t, q, u) returned", "2 finite numbers"):
        run(particle(force=force))


def test_force_not_finite_later():
    with refused("velocity became", "t = 0.31", "force", "finite"):
        run(particle(force=lambda t, q, u: (0.0, math.nan if t > 0.3 else -10.0)))


@pytest.mark.parametrize("option", ["force", "kinematics", "potential"])
def test_functions_of_the_system(option):
    with refused(f"System got {option}=3", "function"):
        particle(**{option: 3})


@pytest.mark.parametrize(
    "initial, words",
    [
        ({"q": (0.0, 1.0, 2.0)}, ["q has 3 components and u 2", "kinematics"]),
        ({"q": 1.0}, ["shape ()", "vectors"]),
        ({"q": [[0.0, 1.0]]}, ["shape (1, 2)", "vectors"]),
        ({"q": "abc"}, ["initial q is 'abc'", "numbers"]),
        ({"u": (math.nan, 0.0)}, ["finite vectors"]),
        ({"u": (1.0, None)}, ["finite vectors"]),
        ({"q": None}, ["initial values", "q=... and u=..."]),
        ({"u": None}, ["initial values", "start=motion.state"]),
    ],
)
def test_initial_values(initial, words):
    with refused(*words):
        run(particle(FLOOR), **initial)


def test_kinematics_that_changes_the_shape():
    with refused("kinematics(q, u, h)", "shape of q"):
        run(particle(kinematics=lambda q, u, h: q[:1]))


# ---- contact map, gradient, boundary -------------------------------------------------------------------------------


def mapped(rows, **options):
    return cd.Constraint(height, contact_map=lambda t, q: rows, **{"law": cd.Law(friction=0.5)} | options)


@pytest.mark.parametrize(
    "constraint, words",
    [
        (mapped([[1.0, 0.0], [0.0, 1.0]]), ["[1.0, 0.0]", "gradient of its gap", "[0.0, 1.0]", "order the rows"]),
        (mapped([[0.0, -1.0], [1.0, 0.0]]), ["[0.0, -1.0]", "where the gap grows"]),
        (mapped([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), ["contact map", "shape (2, 3)", "(2, 2)"]),
        (mapped([0.0, 1.0]), ["contact map", "shape (2,)", "rows n, t"]),
        (mapped([[0.0, 1.0]] * 4), ["contact map", "shape (4, 2)", "rows n, t"]),
        (mapped([[0.0, 1.0], [1.0]]), ["contact map of constraint 0", "numbers"]),
        (cd.Constraint(height, gradient=lambda t, q: (0.0, 1.0, 0.0)), ["gradient", "shape (3,)", "(2,)"]),
        (cd.Constraint(height, gradient=lambda t, q: (1.0, 0.0)), ["[1.0, 0.0]", "gradient of its gap"]),
        (cd.Constraint(height, boundary=lambda t, q: 0.0), ["boundary(t, q)", "array(0.)", "1 numbers"]),
        (mapped(np.eye(2)[::-1], boundary=lambda t, q: (0.0, 0.0, 0.0)), ["boundary(t, q)", "2 numbers"]),
        (cd.Constraint(height, law=cd.Law(anisotropic=(0.1, 0.2))), ["law of constraint 0", "anisotropic", "3"]),
    ],
)
def test_contact(constraint, words):
    with refused(*words):
        run(particle(constraint))


def test_two_sided_friction_needs_two_components():
    rough = cd.Constraint(lambda t, q: q[2], law=cd.Law(two_sided=(0.1, 0.2)))
    with refused("law of constraint 0", "3 components", "two_sided"):
        cd.System(inertia=np.ones(3), constraints=[rough]).start((0, 0, 1), (0, 0, 0))


def test_friction_without_contact_map():
    # Four freedoms, or masses that differ: the engine cannot guess the tangential directions.
    for inertia in ([1.0, 1.0, 1.0, 1.0], [1.0, 2.0]):
        n = len(inertia)
        with refused("constraint 0", "friction but no contact map", "contact_map=G(t, q)"):
            cd.System(inertia=inertia, constraints=[ROUGH]).start(np.ones(n), np.zeros(n))


def test_contacts_of_two_and_of_three_components():
    two = cd.Constraint(height, contact_map=lambda t, q: np.eye(4)[[1, 0]], law=cd.Law(friction=0.5))
    three = cd.Constraint(height, contact_map=lambda t, q: np.eye(4)[[1, 0, 2]], law=cd.Law(friction=0.5))
    with refused("2 and with 3 components", "same number"):
        cd.System(inertia=np.ones(4), constraints=[two, three]).start(np.ones(4), np.zeros(4))


@pytest.mark.parametrize("part", ["gap", "gradient", "contact_map", "boundary"])
def test_parts_of_a_constraint_are_functions(part):
    with refused(f"Constraint got {part}=1.0", "function of (t, q)"):
        cd.Constraint(**{"gap": height, part: 1.0})
    with refused("Constraint got gap=None", "function of (t, q)"):
        cd.Constraint(None)


def test_law_of_a_constraint():
    with refused("Constraint got law=0.3", "Law(friction=0.3)"):
        cd.Constraint(height, law=0.3)
    with refused("rolling", "scenes"):
        cd.Constraint(height, law=cd.Law(friction=0.3, rolling=0.1))


def test_constraints_of_a_system():
    with refused("System got the constraint", "Constraint(gap=...)"):
        particle(height)


# ---- integrate -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.0, -0.01, math.nan, math.inf, None, "a"])
def test_step(step):
    with refused(f"step is {step!r}", "positive", "step=1e-3"):
        run(particle(FLOOR), step=step)


@pytest.mark.parametrize("until", [0.0, -1.0, 0.004])
def test_until_before_the_first_step(until):
    with refused(f"until={until}", "start t = 0.0", "later"):
        run(particle(FLOOR), until=until)


@pytest.mark.parametrize("times", [{"until": math.nan}, {"until": math.inf}, {"until": None}, {"time": math.nan}])
def test_times(times):
    key, value = next(iter(times.items()))
    with refused(f"{key}={value}", "finite times"):
        run(particle(FLOOR), **times)


@pytest.mark.parametrize("scheme", ["inell", None, ["inel"], 3])
def test_scheme(scheme):
    with refused("Unknown scheme", repr(scheme), "midpoint, elast", "function"):
        run(particle(FLOOR), scheme=scheme)


def test_option_of_a_scheme():
    with refused("midpoint has no option 'anticipation'", "tolerance, max_iterations"):
        run(particle(FLOOR), anticipation=0.5)
    with refused("corrected_inel has no option 'tolerance'", "anticipation"):
        run(particle(FLOOR), scheme="inel_corrected", tolerance=1e-3)
    with refused("reflection has no option 'anticipation'", "none"):
        run(particle(FLOOR), scheme="reflection", anticipation=0.5)


def test_on_failure():
    with refused("on_failure is 'stop'", "'warn', 'raise' or 'ignore'"):
        run(particle(FLOOR), on_failure="stop")


@pytest.mark.parametrize("scheme", ["elast", "reflection", "inel", "inel_corrected"])
def test_frictionless_schemes_refuse_friction(scheme):
    with refused(scheme.removesuffix("_corrected"), "friction or restitution", "scheme='midpoint'"):
        run(particle(ROUGH), scheme=scheme)


@pytest.mark.parametrize("scheme", ["inel", "wall_friction", "planar_friction", "planar_friction_corrected"])
def test_schemes_of_1986_refuse_restitution(scheme):
    with refused("restitution", "scheme='midpoint'"):
        run(particle(cd.Constraint(height, law=cd.Law(restitution=0.5))), scheme=scheme)


def test_wall_friction_is_for_particles():
    with refused("wall_friction", "particle", "orthonormal", "scheme='midpoint'"):
        run(particle(mapped(np.eye(2)[::-1]), inertia=[1.0, 2.0]), q=(0.0, 0.0), scheme="wall_friction")
    two_sided = cd.Constraint(height, law=cd.Law(two_sided=(0.1, 0.2)))
    with refused("wall_friction", "one coefficient", "scheme='midpoint'"):
        run(particle(two_sided), scheme="wall_friction", q=(0.0, 0.0))


def test_planar_friction_is_for_two_components():
    rough = cd.Constraint(lambda t, q: q[2], law=cd.Law(friction=0.3))
    with refused("planar_friction", "two components", "scheme='midpoint'"):
        run(particle(rough, inertia=np.ones(3), force=None), q=(0, 0, 1), u=(0, 0, 0), scheme="planar_friction")


@pytest.mark.parametrize("scheme", ["wall_friction", "planar_friction"])
def test_friction_of_1986_is_for_one_contact(scheme):
    # A particle falls into the corner of two rough walls: each formula alone would let it carry all of the load.
    walls = [cd.Constraint(lambda t, q, s=s: q[1] + s * q[0], law=cd.Law(friction=0.5)) for s in (-1, 1)]
    with refused(scheme, "one contact at a time", "0, 1", "scheme='midpoint'"):
        run(particle(*walls), u=(0.0, 0.0), scheme=scheme)


def test_start_from_something_else():
    motion = run(particle(FLOOR))
    with refused("start", "start=motion.state"):
        run(particle(FLOOR), start=(0, 1), until=2.0)
    with refused("(1, 1)", "(2, 1)", "system of the earlier run"):
        run(particle(FLOOR, FLOOR), start=motion.state, until=2.0)
    with refused("3 x 3", "2 velocities"):
        run(particle(FLOOR, inertia=np.ones(3)), start=motion.state, until=2.0)


def test_unsolved_steps_are_told():
    # A block on two rough corners, started on the floor, with one sweep per step only.
    corners = [
        cd.Constraint(
            lambda t, q, s=s: q[1] + s * q[2],
            contact_map=lambda t, q, s=s: [[0.0, 1.0, s], [1.0, 0.0, 0.5]],
            law=cd.Law(friction=0.5),
        )
        for s in (-1.0, 1.0)
    ]
    block = cd.System(inertia=[1.0, 1.0, 0.4], force=lambda t, q, u: (1.0, -10.0, 0.0), constraints=corners)
    options = {"q": np.zeros(3), "u": np.zeros(3), "step": 0.01, "until": 0.05, "max_iterations": 1}
    with pytest.warns(ConvergenceWarning, match=r"of 5 steps: Not solved.*raise max_iterations") as told:
        cd.integrate(block, **options)
    assert len(told) == 1  # once per run
    with pytest.raises(ConvergenceError, match=r"At t = 0\.\d+: Not solved"):
        cd.integrate(block, **options, on_failure="raise")
    motion = cd.integrate(block, **options, on_failure="ignore")
    assert motion.residuals.max() > 1e-12
