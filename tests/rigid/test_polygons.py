"""Polygons: mass, bad input, convex parts, and detection against shapely and against exact rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.ops import nearest_points

import contactdynamics as cd
from contactdynamics.rigid.search import outlines
from contactdynamics.rigid.search import touches as touch
from contactdynamics.rigid.search.contract import NEAR
from contactdynamics.rigid.step import Step

# ---- mass and parts --------------------------------------------------------------------------------------------------


def test_mass_of_a_rectangle():
    # I = m (w^2 + h^2) / 12.
    shape = cd.Rectangle(3.0, 0.5)
    assert shape.area == pytest.approx(1.5, rel=1e-15)
    assert shape.mass_properties().inertia[2, 2] == pytest.approx(1.5 * (9 + 0.25) / 12, rel=1e-14)


@pytest.mark.parametrize("sides", [3, 4, 5, 6, 12, 100])
def test_mass_of_a_regular_polygon(sides):
    # n triangles: area = n/2 R^2 sin(2 pi/n), I = m R^2 / 2 (1 - 2/3 sin^2(pi/n)).
    shape = cd.Polygon.regular(sides, radius=2.0)
    area = sides / 2 * 4 * math.sin(2 * math.pi / sides)
    assert shape.area == pytest.approx(area, rel=1e-13)
    inertia = area * 2 * (1 - 2 / 3 * math.sin(math.pi / sides) ** 2)
    assert shape.mass_properties().inertia[2, 2] == pytest.approx(inertia, rel=1e-12)


def test_mass_of_a_triangle_far_from_the_origin():
    # About the centre of mass I = m (a^2 + b^2 + c^2) / 36; the place of the corners takes no digits away.
    corners = np.array([(0, 0), (4, 0), (1, 3.0)])
    for shift in (0, 1e6):
        shape = cd.Polygon(corners + shift)
        square = 16 + 10 + 18
        assert shape.mass_properties().inertia[2, 2] == pytest.approx(6 * square / 36, rel=1e-9)
        np.testing.assert_allclose(shape.center_of_mass - shift, [5 / 3, 1], atol=1e-9)


def test_either_orientation_and_flat_corners():
    square = [(0, 0), (1, 0), (2, 0), (2, 2), (0, 2)]  # (1, 0) is no corner
    for corners in (square, square[::-1]):
        shape = cd.Polygon(corners)
        assert len(shape.vertices) == 4 and shape.area == 4
        assert shapely.Polygon(shape.vertices).exterior.is_ccw


SPIRAL = [(0, 0), (5, 0), (5, 4), (1, 4), (1, 2), (3, 2), (3, 3), (4, 3), (4, 1), (0, 1)]
CROSS = [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (2, 2), (2, 3), (1, 3), (1, 2), (0, 2), (0, 1), (1, 1)]
ELL = [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]
STAR = [(math.cos(k * math.pi / 5) * (1 + k % 2), math.sin(k * math.pi / 5) * (1 + k % 2)) for k in range(10)]


@pytest.mark.parametrize("corners", [SPIRAL, CROSS, ELL, STAR], ids=["spiral", "cross", "ell", "star"])
@pytest.mark.parametrize("turn", [1, -1])
def test_convex_parts_cover_the_polygon(corners, turn):
    with pytest.warns(UserWarning, match=r"not convex; it is split into \d+ convex parts of one rigid body"):
        shape = cd.Polygon(corners[::turn])
    whole = shapely.Polygon(shape.vertices)
    parts = [shapely.Polygon(part) for part in shape.parts]
    assert all(part.equals(part.convex_hull) or part.convex_hull.area - part.area < 1e-12 for part in parts)
    assert sum(part.area for part in parts) == pytest.approx(whole.area, rel=1e-12)
    assert shapely.union_all(parts).symmetric_difference(whole).area < 1e-12
    assert shape.area == pytest.approx(whole.area, rel=1e-12)


def test_mass_of_an_ell_is_that_of_its_parts():
    # Three unit squares about the centre (5/6, 5/6): I = 3/6 + sum of d^2 = 1/2 + 2/9 + 2 (4/9 + 1/9).
    with pytest.warns(UserWarning, match="not convex"):
        shape = cd.Polygon(ELL)
    np.testing.assert_allclose(shape.center_of_mass, [5 / 6, 5 / 6], rtol=1e-14)
    d = [(0.5 - 5 / 6, 0.5 - 5 / 6), (1.5 - 5 / 6, 0.5 - 5 / 6), (0.5 - 5 / 6, 1.5 - 5 / 6)]
    expected = 3 / 6 + sum(x * x + y * y for x, y in d)
    assert shape.mass_properties().inertia[2, 2] == pytest.approx(expected, rel=1e-13)


def test_irregular_polygons_are_convex_and_repeat():
    for seed in range(40):
        shape = cd.Polygon.irregular(0.3, sides=(3, 11), spread=0.9, elongation=1 + seed % 3, seed=seed)
        assert len(shape.parts) == 1 and 3 <= len(shape.vertices) <= 11
        assert shapely.Polygon(shape.vertices).equals(shapely.Polygon(shape.vertices).convex_hull)
        again = cd.Polygon.irregular(0.3, sides=(3, 11), spread=0.9, elongation=1 + seed % 3, seed=seed)
        assert (shape.vertices == again.vertices).all()
    random = np.random.default_rng(3)
    one, two = (cd.Polygon.irregular(1.0, seed=random) for _ in range(2))
    assert len(one.vertices) != len(two.vertices) or (one.vertices != two.vertices).any()


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cd.Polygon([(0, 0), (1, 0)]), r"2 vertices; give at least 3"),
        (lambda: cd.Polygon([]), r"give a list of corners"),
        (lambda: cd.Polygon([(0, 0, 0), (1, 0, 0), (0, 1, 0)]), r"shape \(3, 3\)"),
        (lambda: cd.Polygon("abc"), r"give numbers"),
        (lambda: cd.Polygon([(0, 0), (1, 0), (np.nan, 1)]), r"finite"),
        (lambda: cd.Polygon([(0, 0), (1, 0), (1, 0), (0, 1)]), r"\(1.0, 0.0\) twice \(numbers 1 and 2\); give it once"),
        (lambda: cd.Polygon([(0, 0), (1, 0), (1, 1), (0, 0)]), r"twice"),
        (lambda: cd.Polygon([(0, 0), (1, 1), (2, 2)]), r"area is zero"),
        (lambda: cd.Polygon([(0, 0), (1, 0), (3, 0), (2, 0)]), r"area is zero"),
        (lambda: cd.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]), r"meets itself \(edges 0 and 2"),
        (lambda: cd.Polygon([(0, 0), (4, 0), (4, 3), (2, 0), (0, 3)]), r"meets itself"),
        (lambda: cd.Rectangle(0, 1), r"width=0; give a positive length"),
        (lambda: cd.Rectangle(1, "2"), r"height='2'"),
        (lambda: cd.Polygon.regular(2, 1.0), r"sides=2; give a whole number >= 3"),
        (lambda: cd.Polygon.regular(5, -1.0), r"radius=-1.0"),
        (lambda: cd.Polygon.irregular(1.0, sides=(9, 5)), r"sides=\(9, 5\)"),
        (lambda: cd.Polygon.irregular(1.0, spread=1.0), r"spread=1.0"),
        (lambda: cd.Polygon.irregular(0.0), r"radius=0.0"),
        (lambda: cd.Polygon.irregular(1.0, elongation=0.5), r"elongation=0.5"),
    ],
)
def test_bad_outlines_are_told_in_one_sentence(make, message):
    with pytest.raises(cd.InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_bad_bodies_are_told():
    scene = cd.Scene(gravity=(0, 0, -9.81))
    scene.material("m", density=1.0, friction=0.5)
    with pytest.raises(cd.InputError, match="shape of 2 dimensions"):
        scene.add(cd.Rectangle(1, 1), material="m")
    flat = cd.Scene(gravity=(0, -9.81))
    flat.material("m", density=1.0, friction=0.5)
    with pytest.raises(cd.InputError, match="as many of both"):
        flat.add_many([cd.Rectangle(1, 1)], material="m", position=[(0, 0), (2, 0)])
    with pytest.raises(cd.InputError, match="among polygons"):
        flat.add_many([cd.Rectangle(1, 1), cd.Disk(1)], material="m", position=[(0, 0), (2, 0)])
    with pytest.raises(cd.InputError, match="one angle"):
        flat.add_many(cd.Rectangle(1, 1), material="m", position=[(0, 0), (2, 0)], rotation=[0, 1, 2])
    with pytest.raises(cd.InputError, match=r"rotation=\.\.\. for balls"):
        flat.add_many([1.0, 1.0], material="m", position=[(0, 0), (3, 0)], rotation=1.0)
    flat.add_many(cd.Rectangle(1, 1), material="m", position=[(0, 0), (0.7, 0)])
    with pytest.raises(cd.InputError, match=r"Bodies 0 and 1 overlap by 60%"):
        cd.Simulation(flat, time_step=1e-3)


# ---- detection -------------------------------------------------------------------------------------------------------


def search_of(sim):
    """The search for contacts of polygons, the last one."""
    return sim.contact_set.searches[-1]


def touches(one, two, *, gap_limit=None, velocity=(0, 0)):
    """Corners in space and the contacts that the engine finds for two bodies given by their corners."""
    scene = cd.Scene(gravity=(0, 0))
    scene.material("m", density=1.0, friction=0.5)
    for corners, speed in ((one, (0, 0)), (two, velocity)):
        shape = corners if isinstance(corners, tuple) else cd.Polygon(corners)
        if isinstance(shape, tuple):
            scene.add(cd.Disk(shape[1]), material="m", position=shape[0], velocity=speed)
        else:
            scene.add(shape, material="m", position=shape.center_of_mass, velocity=speed)
    sim = cd.Simulation(scene, time_step=1e-3, check=False)
    sim.contact_set.detect(sim.model, Step(0.0, 1e-3, 0.0, False, False, sim.rows, sim.rows), sim.rows)
    return search_of(sim).found, sim


def random_pair(random, distance):
    """Two random convex polygons, the second one moved along a random direction to the distance given.

    The distance is that of the outlines where positive; where negative, the depth by which they are pushed together
    along the line of touching.
    """
    one = cd.Polygon.irregular(1.0, sides=(3, 8), spread=0.8, seed=random).vertices
    two = cd.Polygon.irregular(random.uniform(0.3, 1.5), sides=(3, 8), spread=0.8, seed=random).vertices
    angle = random.uniform(0, 2 * np.pi)
    away = np.array([np.cos(angle), np.sin(angle)])
    low, high = 0.0, 4.0
    a = shapely.Polygon(one)
    for _ in range(80):  # where they begin to touch
        middle = 0.5 * (low + high)
        low, high = (low, middle) if a.distance(shapely.Polygon(two + middle * away)) > 0 else (middle, high)
    return one, two + (high + distance) * away


@pytest.mark.parametrize("distance", [-0.05, -1e-3, -1e-8, 0.0, 3e-4, 0.01, 0.3])
def test_detection_against_shapely(distance):
    random = np.random.default_rng(abs(int(distance * 1e9)))
    for _ in range(40):
        one, two = random_pair(random, distance)
        a, b = shapely.Polygon(one), shapely.Polygon(two)
        found, _ = touches(one, two)
        size = found.place[:, touch.SIZE]
        if distance >= 3e-4:
            gap = found.gap
            assert ((gap > 0) & (gap <= NEAR * size)).all()  # near is not touching, and nothing is overlapped
            if a.distance(b) > 2e-4:
                assert len(gap) == 0 or a.distance(b) < 3 * NEAR
            continue
        assert 1 <= len(found.status) <= 2
        gap, normal = found.gap, found.place[0, touch.NX : touch.NY + 1]
        assert math.hypot(*normal) == pytest.approx(1, abs=1e-12)
        # The gap is the least way along the normal that takes them apart: they touch after it, and overlap before it.
        depth = -gap.min()
        if distance < 0:
            assert 0 < depth <= -distance * (1 + 1e-6)
            apart = shapely.Polygon(two + (depth + 1e-9) * normal)
            assert a.distance(apart) <= 3e-9 and a.intersection(apart).area < 1e-12
            assert a.intersects(shapely.Polygon(two + (depth - 1e-9) * normal))
        # Each contact point lies in both bodies, but for half the overlap.
        for point, g in zip(found.place[:, touch.X :], gap, strict=True):
            place = shapely.Point(point)
            assert a.distance(place) <= 0.5 * abs(g) + 1e-9 and b.distance(place) <= 0.5 * abs(g) + 1e-9


def exact_separation(one, two):
    """Signed square of the largest separation over all edges, exact: > 0 apart, 0 touching, < 0 overlap."""
    best = None
    for a, b in ((one, two), (two, one)):
        for k, (x0, y0) in enumerate(a):
            x1, y1 = a[(k + 1) % len(a)]
            nx, ny = Fraction(y1) - Fraction(y0), Fraction(x0) - Fraction(x1)
            height = min(nx * (Fraction(x) - Fraction(x0)) + ny * (Fraction(y) - Fraction(y0)) for x, y in b)
            square = nx * nx + ny * ny
            signed = height * abs(height) / square  # ordered as height / |n|
            best = signed if best is None or signed > best else best
    return best


def hull(points):
    ring = shapely.MultiPoint(points).convex_hull
    if ring.geom_type != "Polygon" or ring.area < 4:
        return None
    return [(int(x), int(y)) for x, y in shapely.geometry.polygon.orient(ring).exterior.coords[:-1]]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), min_size=3, max_size=8),
    st.lists(st.tuples(st.integers(-2, 10), st.integers(-2, 10)), min_size=3, max_size=8),
)
def test_detection_against_exact_arithmetic(first, second):
    # Whole numbers make touching and grazing cases common: corners on edges, edges on edges, corners on corners.
    one, two = hull(first), hull(second)
    if one is None or two is None:
        return
    sign = exact_separation(one, two)
    found, _ = touches(one, two)
    gap = found.gap
    if sign > 0:
        assert len(gap) == 0
    elif sign < 0:
        assert len(gap) >= 1 and gap.min() == pytest.approx(-math.sqrt(-sign), rel=1e-9, abs=1e-12)
    else:
        # Parallel edges that share one point only pass each other; everything else that touches is a contact.
        assert (abs(gap) <= NEAR * 10).all() and (not len(gap) or abs(gap.min()) < 1e-12)
        shared = shapely.Polygon(one).intersection(shapely.Polygon(two))
        if shared.length > 0:
            assert len(gap) == 2


@pytest.mark.parametrize("distance", [-0.02, 0.0, 1e-5])
def test_disks_on_polygons_against_shapely(distance):
    random = np.random.default_rng(7)
    for _ in range(60):
        one = cd.Polygon.irregular(1.0, sides=(3, 8), spread=0.8, seed=random).vertices
        angle, radius = random.uniform(0, 2 * np.pi), random.uniform(0.2, 1.0)
        ring = shapely.Polygon(one)
        low, high = 0.0, 4.0
        away = np.array([np.cos(angle), np.sin(angle)])
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (
                (low, middle) if ring.distance(shapely.Point(middle * away)) > radius + distance else (middle, high)
            )
        centre = high * away
        for flip in (False, True):
            pair = ((centre, radius), one) if flip else (one, (centre, radius))
            found, _ = touches(*pair)
            assert len(found.status) == 1
            gap, nx, ny = found.gap[0], *found.place[0, [touch.NX, touch.NY]]
            assert gap == pytest.approx(ring.distance(shapely.Point(centre)) - radius, abs=1e-12)
            nearest = np.array(nearest_points(ring, shapely.Point(centre))[0].coords[0])
            normal = (centre - nearest) / np.linalg.norm(centre - nearest) * (-1 if flip else 1)
            np.testing.assert_allclose([nx, ny], normal, atol=1e-7)


def test_a_disk_inside_a_polygon_leaves_by_the_nearest_edge():
    found, _ = touches([(-2, -1), (2, -1), (2, 1), (-2, 1)], ((0.3, 0.9), 0.05))
    np.testing.assert_allclose([found.gap[0], *found.place[0, :3]], [-0.15, 0.05, 0, 1], atol=1e-12)


def test_an_edge_on_an_edge_has_the_two_ends_of_the_overlap():
    found, _ = touches([(0, 0), (4, 0), (4, 1), (0, 1)], [(3, 1), (6, 1), (6, 2), (3, 2)])
    points = found.place[:, touch.X :]
    np.testing.assert_allclose(points[points[:, 0].argsort()], [(3, 1), (4, 1)], atol=1e-14)
    np.testing.assert_allclose(found.place[:, touch.NX : touch.NY + 1], [(0, 1), (0, 1)], atol=1e-14)


@pytest.mark.parametrize("distance", [-0.05, -1e-3, -1e-6, -1e-9, 0.0, 1e-6, 5e-4])
def test_an_edge_is_kept_as_the_search_over_all_corners_says(distance):
    # `choose_axes` asks two corners where `choose_axis` asks all: the same answer for any edge remembered.
    random = np.random.default_rng(7)
    kept = 0
    for _ in range(60):
        _, sim = touches(*random_pair(random, distance))
        o, places = search_of(sim).shapes, sim.contact_set.near.places
        heights, apart = np.empty((2, 10)), np.zeros(1, dtype=np.int32)
        size = o.size.min()
        for edge in range(len(o.body)):
            previous = edge if edge < o.start[1] else outlines.ON_SECOND + edge - o.start[1]
            axis, near = outlines.choose_axis(0, 1, o.start, o.world, o.normal, places, o.size, previous, (0.1, 0.2),
                                            0.0, outlines.WATCH * size, heights)  # fmt: skip
            met = outlines.meeting_arrays(1)
            met.index[0] = (0, 1, 0, 0, 1, previous, -1)
            met.bound[0] = (0.0, outlines.WATCH * size)
            outlines.choose_axes(met, 1, o, places, np.array([0, 1]), sim.rows, heights, apart)
            assert met.index[0, outlines.EDGE] == (axis if near else -1)
            kept += near and axis == previous
    assert kept > 20 or distance > 0


def test_an_edge_is_left_that_is_much_worse_than_the_best():
    # Deep in each other, an edge that is kept too long has its contact beside it: two bodies that turn go deeper still.
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1.0)])
    for deep, left in ((0.004, False), (0.03, True)):
        shift = np.array([1 - 1.8 * deep, 1 - deep])  # the upper edge of the first is the best
        _, sim = touches(square, square + shift)
        o, size = search_of(sim).shapes, 0.5
        axis, near = outlines.choose_axis(0, 1, o.start, o.world, o.normal, sim.contact_set.near.places, o.size, 1,
                                          (0.0, 0.0), 0.0, outlines.WATCH * size, np.empty((2, 10)))  # fmt: skip
        assert near and axis == (2 if left else 1)
        assert left == (0.8 * deep > outlines.HELD * size)


def test_corners_that_meet_take_the_plane_that_the_motion_says():
    # Two squares overlap by a small square of corners. One that came from above rests on the horizontal edge, one that
    # came from the side leans on the vertical one, whichever overlap is the smaller.
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1.0)])
    for shift in ((0.9999, 0.99985), (0.99985, 0.9999)):
        for velocity, normal in (((0, -1), (0, 1)), ((-1, 0), (1, 0)), ((-0.1, -1), (0, 1)), ((-1, -0.1), (1, 0))):
            found, _ = touches(square, square + shift, velocity=velocity)
            np.testing.assert_allclose(found.place[0, touch.NX : touch.NY + 1], normal, atol=1e-12)
