"""Polyhedra: mass, bad input, faces, and detection against exact rational arithmetic and a naive search of all axes."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contactdynamics as cd
from contactdynamics.rigid.search import meeting
from contactdynamics.rigid.search import polyhedra as search
from contactdynamics.rigid.search import touches as touch
from contactdynamics.rigid.search.contract import NEAR
from contactdynamics.rigid.step import Step
from contactdynamics.scenes.shapes import hulls


def inner_radius(shape) -> float:
    """Radius of the largest ball about the centre inside the faces of a shape, m."""
    corner = shape.vertices[[face[0] for face in shape.faces]]
    return float((hulls.face_normals(shape.vertices, shape.faces) * corner).sum(axis=1).min())


# ---- shapes and mass -------------------------------------------------------------------------------------------------


def test_mass_of_a_box():
    # I_x = m (y^2 + z^2) / 12.
    box = cd.Box((3.0, 2.0, 0.5))
    found = box.mass_properties()
    assert box.volume == pytest.approx(3.0, rel=1e-15)
    expected = np.diag([4 + 0.25, 9 + 0.25, 9 + 4]) * 3 / 12
    np.testing.assert_allclose(found.inertia, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("faces", [4, 6, 8, 12, 20])
def test_mass_of_platonic_solids(faces):
    # Volume = faces * area * inner radius / 3, and the tensor is isotropic; closed forms where they are short.
    solid = cd.Polyhedron.regular(faces, radius=1.0)
    sides = {4: 3, 6: 4, 8: 3, 12: 5, 20: 3}[faces]
    assert len(solid.faces) == faces and {len(face) for face in solid.faces} == {sides}
    edge = np.linalg.norm(solid.vertices[solid.faces[0][0]] - solid.vertices[solid.faces[0][1]])
    area = sides * edge**2 / (4 * math.tan(math.pi / sides))
    around = edge / (2 * math.sin(math.pi / sides))
    assert solid.volume == pytest.approx(faces * area * math.sqrt(1 - around**2) / 3, rel=1e-13)
    tensor = solid.mass_properties().inertia / solid.volume
    np.testing.assert_allclose(tensor, tensor[0, 0] * np.eye(3), atol=1e-14)
    if faces in (4, 6, 8):
        assert tensor[0, 0] == pytest.approx({4: 2 / 15, 6: 2 / 9, 8: 1 / 5}[faces], rel=1e-13)


def test_mass_of_a_tetrahedron_in_rationals_far_from_the_origin():
    # Whole corners: volume det / 6, centre their mean, second moments sum_{i<=j} of the corners over 20.
    corners = [(0, 0, 0), (4, 0, 1), (1, 3, 0), (-1, 2, 5)]
    exact = [tuple(Fraction(x) for x in corner) for corner in corners]
    mean = [sum(c[k] for c in exact) / 4 for k in range(3)]
    d = [[c[k] - mean[k] for k in range(3)] for c in exact]
    rows = [[exact[n][k] - exact[0][k] for k in range(3)] for n in (1, 2, 3)]
    (a, b, c), (e, f, g), (h, i, j) = rows
    volume = abs(a * (f * j - g * i) - b * (e * j - g * h) + c * (e * i - f * h)) / 6
    second = [[volume / 20 * sum(x[k] * x[l] for x in d) for l in range(3)] for k in range(3)]
    trace = sum(second[k][k] for k in range(3))
    for shift in (0.0, 1e6):
        shape = cd.Polyhedron(np.array(corners) + shift)
        assert shape.volume == pytest.approx(float(volume), rel=1e-9)
        np.testing.assert_allclose(shape.center_of_mass - shift, [float(x) for x in mean], atol=1e-9)
        expected = [[float((trace if k == l else 0) - second[k][l]) for l in range(3)] for k in range(3)]
        np.testing.assert_allclose(shape.mass_properties().inertia, expected, rtol=1e-8, atol=1e-8)


def test_points_that_are_no_corners_are_left_out():
    # A cube from its corners, and points inside, in the middle of faces and of edges.
    points = np.array(list(itertools.product((0, 1, 2), repeat=3)), dtype=float)
    cube = cd.Polyhedron(points)
    assert len(cube.vertices) == 8 and sorted(map(len, cube.faces)) == [4] * 6
    np.testing.assert_allclose(cube.center_of_mass, 1.0, atol=1e-15)
    assert cube.volume == pytest.approx(8.0, rel=1e-14)


def test_faces_are_closed_and_look_outwards():
    for seed in range(30):
        shape = cd.Polyhedron.irregular(1.0, corners=(4, 20), spread=0.8, elongation=(1 + seed % 3, 1.5), seed=seed)
        there = {(face[k - 1], face[k]) for face in shape.faces for k in range(len(face))}
        assert len(there) == sum(map(len, shape.faces)) and {(b, a) for a, b in there} == there
        assert len(shape.vertices) - len(there) // 2 + len(shape.faces) == 2  # Euler
        normals = hulls.face_normals(shape.vertices, shape.faces)
        heights = shape.vertices @ normals.T - (shape.vertices[[f[0] for f in shape.faces]] * normals).sum(axis=1)
        assert heights.max() < 1e-9
        again = cd.Polyhedron.irregular(1.0, corners=(4, 20), spread=0.8, elongation=(1 + seed % 3, 1.5), seed=seed)
        assert (shape.vertices == again.vertices).all()


def test_prisms_and_wedges():
    prism = cd.Polyhedron.prism([(0, 0), (2, 0), (0, 3)], height=4.0)
    assert prism.volume == pytest.approx(12.0, rel=1e-14)
    np.testing.assert_allclose(prism.center_of_mass, [2 / 3, 1, 2], rtol=1e-14)
    wedge = cd.Polyhedron.wedge((3.0, 2.0, 1.5))
    assert wedge.volume == pytest.approx(4.5, rel=1e-14)
    np.testing.assert_allclose(wedge.center_of_mass, [1, 1, 0.5], rtol=1e-14)


def test_mass_of_unions():
    # Boxes on a grid of whole numbers: the union is a set of unit cells, whose moments are sums over the cells.
    random = np.random.default_rng(3)
    for _ in range(12):
        low = random.integers(0, 4, (4, 3))
        high = low + random.integers(1, 4, (4, 3))
        parts = [
            cd.Polyhedron(list(itertools.product(*zip(a, b, strict=True)))) for a, b in zip(low, high, strict=True)
        ]
        body = cd.Cluster(parts)
        cells = {cell for a, b in zip(low, high, strict=True)
                 for cell in itertools.product(*(range(x, y) for x, y in zip(a, b, strict=True)))}  # fmt: skip
        middle = np.array(sorted(cells)) + 0.5
        assert body.volume == pytest.approx(len(cells), rel=1e-12)
        np.testing.assert_allclose(body.center_of_mass, middle.mean(axis=0), rtol=1e-12)
        d = middle - middle.mean(axis=0)
        second = d.T @ d + len(cells) / 12 * np.eye(3)
        np.testing.assert_allclose(body.mass_properties().inertia, np.trace(second) * np.eye(3) - second, rtol=1e-10,
                                   atol=1e-10)  # fmt: skip


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cd.Polyhedron([(0, 0, 0), (1, 0, 0), (0, 1, 0)]), r"3 points; give at least 4"),
        (lambda: cd.Polyhedron([]), r"give a list of corners"),
        (lambda: cd.Polyhedron([(0, 0), (1, 0), (0, 1), (1, 1)]), r"shape \(4, 2\)"),
        (lambda: cd.Polyhedron("abcd"), r"give numbers"),
        (lambda: cd.Polyhedron([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, np.nan)]), r"finite"),
        (lambda: cd.Polyhedron([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]), r"one plane: its volume is zero"),
        (lambda: cd.Polyhedron([(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 3)]), r"volume is zero"),
        (lambda: cd.Polyhedron(np.zeros((5, 3))), r"volume is zero"),
        (lambda: cd.Box((1, 0, 1)), r"size=\(1, 0, 1\); give three positive lengths"),
        (lambda: cd.Box((1, 2)), r"size=\(1, 2\)"),
        (lambda: cd.Box(-1), r"size=-1"),
        (lambda: cd.Polyhedron.prism([(0, 0), (1, 0), (0, 1)], 0), r"height=0; give a positive length"),
        (lambda: cd.Polyhedron.regular(7, 1.0), r"faces=7; give 4, 6, 8, 12 or 20"),
        (lambda: cd.Polyhedron.irregular(1.0, corners=3), r"corners=3"),
        (lambda: cd.Polyhedron.irregular(1.0, spread=2), r"spread=2"),
        (lambda: cd.Polyhedron.irregular(1.0, elongation=0.5), r"elongation=0.5"),
        (lambda: cd.Cluster([cd.Box(1), cd.Sphere(1)]), r"among polyhedra"),
        (lambda: cd.Cluster([cd.Box(1), cd.Box(1)], [(0, 0, 0)]), r"2 polyhedra and centres of shape \(1, 3\)"),
    ],
)
def test_bad_shapes_are_told_in_one_sentence(make, message):
    with pytest.raises(cd.InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_an_outline_that_is_not_convex_makes_no_prism():
    with pytest.warns(UserWarning, match="not convex"), pytest.raises(cd.InputError, match="Cluster of prisms"):
        cd.Polyhedron.prism([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)], 1.0)


# ---- detection -------------------------------------------------------------------------------------------------------


def touches(one, two, *, velocity=(0, 0, 0), mode="moreau", h=1e-3):
    """The contacts that the engine finds for two bodies given by their points, or (centre, radius) for a sphere."""
    scene = cd.Scene(gravity=(0, 0, 0))
    scene.material("m", density=1.0, friction=0.5)
    for points, speed in ((one, (0, 0, 0)), (two, velocity)):
        if isinstance(points, tuple):
            scene.add(cd.Sphere(points[1]), material="m", position=points[0], velocity=speed)
        else:
            shape = points if isinstance(points, cd.Polyhedron) else cd.Polyhedron(points)
            scene.add(shape, material="m", position=shape.center_of_mass, velocity=speed)
    sim = cd.Simulation(scene, time_step=h, check=False)
    sim.contact_set.detect(sim.model, Step(0.0, h, 0.0, mode == "anticipate", False, sim.rows, sim.rows), sim.rows)
    return sim.contact_set.searches[-1].found, sim


def axes_of(shape):
    """Face normals and edge directions, from its definition alone."""
    edges = {tuple(sorted((f[k - 1], f[k]))) for f in shape.faces for k in range(len(f))}
    return hulls.face_normals(shape.vertices, shape.faces), [shape.vertices[b] - shape.vertices[a] for a, b in edges]


def all_axes(one, two):
    """(k, 3) all normals of faces and of pairs of edges, either way round."""
    normals, edges = axes_of(one)
    others, lines = axes_of(two)
    crossed = np.cross(np.array(edges)[:, None], np.array(lines)[None]).reshape(-1, 3)
    length = np.sqrt((crossed**2).sum(axis=1))
    crossed = crossed[length > 1e-8] / length[length > 1e-8, None]
    return np.concatenate([normals, -others, crossed, -crossed])


def separations(one, two):
    """The axes of two bodies and the separation along each of them."""
    x, y, axes = one.vertices + one.center_of_mass, two.vertices + two.center_of_mass, all_axes(one, two)
    return axes, (axes @ y.T).min(axis=1) - (axes @ x.T).max(axis=1)


def naive_separation(one, two):
    """The largest separation over all normals of faces and of pairs of edges, brute force."""
    return separations(one, two)[1].max()


def moved(shape, shift):
    return cd.Polyhedron(shape.vertices + shape.center_of_mass + shift)


def random_pair(random, distance):
    """Two random polyhedra, the second one moved along a random line to the separation ``distance``."""
    one = cd.Polyhedron.irregular(1.0, corners=(4, 12), spread=0.9, seed=random)
    two = cd.Polyhedron.irregular(random.uniform(0.4, 1.3), corners=(4, 12), spread=0.9, seed=random)
    away = random.normal(size=3)
    away /= np.linalg.norm(away)
    axes, heights = separations(one, two)
    low, high = 0.0, 4.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if (heights + middle * axes @ away).max() > distance else (middle, high)
    return one, moved(two, high * away)


@pytest.mark.parametrize("distance", [-0.05, -1e-3, -1e-7, 0.0, 2e-5, 0.01])
def test_detection_against_all_axes(distance):
    random = np.random.default_rng(abs(int(distance * 1e9)) + 1)
    for _ in range(12):
        one, two = random_pair(random, distance)
        found, _ = touches(one, two)
        size = min(inner_radius(s) for s in (one, two))
        if distance > NEAR * size:
            assert (found.gap > 0).all()  # near is not touching
            continue
        gap, normal = found.gap, found.place[0, search.NX : search.NZ + 1]
        assert len(gap) and np.linalg.norm(normal) == pytest.approx(1, abs=1e-12)
        # Faces are preferred to edges within 1e-4 of the size: by so much the overlap may be the larger one.
        assert distance - 1.01e-4 * size <= gap.min() <= distance + 1e-9
        # The gap is what takes the bodies apart along the normal.
        apart = naive_separation(one, moved(two, (1e-9 - gap.min()) * normal))
        assert -1e-12 <= apart <= 3e-9 + 1e-4 * size
        # Contact points lie in both bodies, but for half the gap.
        for point, g in zip(found.place[:, search.X :], gap, strict=True):
            for shape in (one, two):
                normals, _ = axes_of(shape)
                corner = shape.vertices[[f[0] for f in shape.faces]] + shape.center_of_mass
                assert ((point - corner) * normals).sum(axis=1).max() <= 0.5 * abs(g) + 1e-9


@pytest.mark.parametrize("distance", [-0.2, -0.02, -1e-3, 0.02])
def test_detection_against_coal(distance):
    # A collision library of others: the depth by which two convex bodies overlap, or their distance.
    coal = pytest.importorskip("coal", reason="no coal here: pip install coal (Linux, macOS)")

    def convex(shape):
        points = coal.StdVec_Vec3s()
        points.extend(list(shape.vertices + shape.center_of_mass))
        return coal.ConvexBase.convexHull(points, True, "Qt")

    random = np.random.default_rng(abs(int(distance * 1e9)) + 7)
    for _ in range(12):
        one, two = random_pair(random, distance)
        request, still = coal.DistanceRequest(), coal.Transform3s()
        request.gjk_tolerance = request.epa_tolerance = 1e-8
        theirs = coal.distance(convex(one), still, convex(two), still, request, coal.DistanceResult())
        found, _ = touches(one, two)
        size = min(inner_radius(s) for s in (one, two))
        if theirs > 0:
            assert theirs >= distance - 1e-6 and not (found.gap <= 0).any()
        else:  # faces are preferred to edges within 1e-4 of the size
            assert theirs - 1.01e-4 * size - 1e-6 <= found.gap.min() <= theirs + 1e-6


def exact_separation(one, two):
    """Signed square of the largest separation over all axes, in rationals: > 0 apart, 0 touching, < 0 overlap."""

    def cross(a, b):
        return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])

    def dot(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    def whole(shape):
        points = np.rint(shape.vertices + shape.center_of_mass).astype(int)
        assert np.abs(points - shape.vertices - shape.center_of_mass).max() < 1e-9
        return [tuple(Fraction(int(x)) for x in p) for p in points]

    x, y = whole(one), whole(two)
    axes, lines = [], []
    for shape, points, sign in ((one, x, 1), (two, y, -1)):
        edges = set()
        for f in shape.faces:
            a, b, c = (points[k] for k in f[:3])
            n = cross([q - p for p, q in zip(a, b, strict=True)], [q - p for p, q in zip(b, c, strict=True)])
            axes.append(tuple(sign * v for v in n))
            edges |= {tuple(sorted((f[k - 1], f[k]))) for k in range(len(f))}
        lines.append({tuple(q - p for p, q in zip(points[a], points[b], strict=True)) for a, b in edges})
    for a in lines[0]:
        for b in lines[1]:
            n = cross(a, b)
            if any(n):
                axes += [n, tuple(-v for v in n)]
    best = None
    for n in set(axes):
        height = min(dot(n, p) for p in y) - max(dot(n, p) for p in x)
        signed = height * abs(height) / dot(n, n)
        best = signed if best is None or signed > best else best
    return best


WHOLE = st.integers(-3, 3)
CLOUD = st.lists(st.tuples(WHOLE, WHOLE, WHOLE), min_size=4, max_size=8)


def made(points, shift=(0, 0, 0)):
    try:
        return cd.Polyhedron(np.array(points, dtype=float) + shift)
    except cd.InputError:
        return None


@settings(max_examples=80, deadline=None)
@given(CLOUD, CLOUD, st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)))
def test_detection_against_exact_arithmetic(first, second, shift):
    # Whole numbers make touching and grazing cases common: corners on corners, edges on edges, faces on faces.
    one, two = made(first), made(second, shift)
    if one is None or two is None:
        return
    sign = exact_separation(one, two)
    found, _ = touches(one, two)
    gap, size = found.gap, min(inner_radius(s) for s in (one, two))
    if sign > 0:
        assert len(gap) == 0 or (gap.min() > 0 and gap.min() ** 2 < float(sign) * (1 + 1e-9))
    elif sign < 0:
        assert len(gap) >= 1
        assert -math.sqrt(-sign) - 1.01e-4 * size <= gap.min() <= -math.sqrt(-sign) + 1e-9
    else:  # faces that share a line only pass each other; nothing that touches overlaps
        assert not len(gap) or abs(gap.min()) <= 1e-4 * size


def box_at(size, place):
    return moved(cd.Box(size), np.asarray(place, dtype=float))


def corners_of(found):
    return {tuple(np.round(p, 9) + 0.0) for p in found.place[:, search.X :]}


def test_a_face_on_a_face_has_all_corners_of_the_joint():
    # Two bricks, one turned by 45 degrees: the square's corners are cut, an octagon is left.
    brick = cd.Polyhedron.prism([(-1, -1), (1, -1), (1, 1), (-1, 1)], 1.0)
    turned = np.array([(1.3, 0), (0, 1.3), (-1.3, 0), (0, -1.3)])
    found, _ = touches(brick, moved(cd.Polyhedron.prism(turned, 1.0), (0, 0, 1)))
    expected = {(s * 1.0, t * 0.3) for s in (1, -1) for t in (1, -1)} | {
        (s * 0.3, t * 1.0) for s in (1, -1) for t in (1, -1)
    }
    assert {(x, y) for x, y, _ in corners_of(found)} == {(round(x, 9), round(y, 9)) for x, y in expected}
    assert len(found.status) == 8 and np.abs(found.gap).max() < 1e-15
    names = [tuple(row) for row in found.index[:, [touch.NAME_ONE, touch.NAME_TWO]]]
    assert len(set(names)) == 8 and all(a >= 0 and b >= 0 for a, b in names)  # crossings of edges


def test_names_of_corners_stay_while_a_block_slides():
    # The lower face is the larger one: the corners are those of the upper block, wherever it lies.
    seen = set()
    for x in np.linspace(-0.4, 0.4, 9):
        found, _ = touches(box_at((3, 3, 1), (0, 0, 0)), box_at((1, 1, 1), (x, 0.3 * x, 1)))
        assert len(found.status) == 4
        seen.add(frozenset((int(a), int(b)) for a, b in found.index[:, [touch.NAME_ONE, touch.NAME_TWO]]))
    assert len(seen) == 1 and all(a == -1 for a, _ in next(iter(seen)))


@pytest.mark.parametrize("tilt", [0.0, 1e-12, 1e-9, 1e-7, 1e-6, 1e-5])
def test_faces_that_are_nearly_parallel_meet_as_faces(tilt):
    # Less than 1e-4 of the size over its width: all four corners act, for every small angle about every axis.
    for axis in np.eye(3):
        q = np.array([math.cos(tilt / 2), *(math.sin(tilt / 2) * axis)])
        scene = cd.Scene(gravity=(0, 0, 0))
        scene.material("m", density=1.0, friction=0.5)
        scene.add(cd.Box((2, 2, 1)), material="m")
        scene.add(cd.Box(1.0), material="m", position=(0.2, 0.1, 1.0), rotation=q)
        sim = cd.Simulation(scene, time_step=1e-3, check=False)
        sim.contact_set.detect(sim.model, Step(0.0, 1e-3, 0.0, False, False, sim.rows, sim.rows), sim.rows)
        found = sim.contact_set.searches[-1].found
        assert len(found.status) == 4 and np.abs(found.gap).max() <= tilt
        np.testing.assert_allclose(np.abs(found.place[:, search.NZ]), 1.0, atol=1e-9)


@pytest.mark.parametrize("angle", [0.0, 0.3, math.pi / 4])
def test_thin_plates(angle):
    # 1 : 1000, crossed: the joint of two plates is the octagon (or square) of their outlines, whatever their thickness.
    c, s = math.cos(angle), math.sin(angle)
    turn = np.array([(c, -s), (s, c)])
    square = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1.0)])
    low = cd.Polyhedron.prism(square, 2e-3)
    high = moved(cd.Polyhedron.prism(square @ turn.T, 2e-3), (0, 0, 2e-3))
    found, _ = touches(low, high)
    assert len(found.status) == (4 if angle == 0 else 8)
    assert np.abs(found.gap).max() < 1e-15
    np.testing.assert_allclose(found.place[:, search.NX : search.NZ + 1], [(0, 0, 1)] * len(found.status), atol=1e-12)


def test_tiny_faces():
    # A cube with corners cut off by 1e-3 stands on eight corners, one cut by 1e-6 as a cube does; on such a corner each
    # has three contacts where the corners of its small face are told apart.
    for cut, corners, tip in ((1e-3, 8, 3), (1e-6, 4, 1)):
        tiny_faces(cut, corners, tip)


def tiny_faces(cut, corners, tip):
    points = list(itertools.product((-0.5, 0.5), repeat=3))
    shape = cd.Polyhedron([np.array(p) - cut * np.sign(p[k]) * np.eye(3)[k] for p in points for k in range(3)])
    assert len(shape.faces) == 14 and len(shape.vertices) == 24
    found, _ = touches(box_at((3, 3, 1), (0, 0, -0.5)), moved(shape, (0, 0, 0.5)))
    assert len(found.status) == corners and np.abs(found.gap).max() < 1e-15
    axis = np.cross((1, 1, 1), (0, 0, -1)) / math.sqrt(2)  # turn the corner (1, 1, 1) downwards
    angle = math.acos(-1 / math.sqrt(3))
    k = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    turn = np.eye(3) + math.sin(angle) * k + (1 - math.cos(angle)) * k @ k
    standing = shape.vertices @ turn.T
    down = cd.Polyhedron(standing - (0, 0, standing[:, 2].min()))
    found, _ = touches(box_at((3, 3, 1), (0, 0, -0.5)), down)
    assert len(found.status) == tip and np.abs(found.gap).max() < 1e-12


def test_a_corner_on_a_corner():
    # Two octahedra by their points, which overlap by more than that by which parallel faces pass each other (1e-5): the
    # contact keeps them apart.
    one = cd.Polyhedron.regular(8, radius=1.0)
    for depth in (3e-4, 1e-3, 1e-2):
        found, _ = touches(one, moved(one, (0, 0, 2 - depth)), velocity=(0, 0, -1.0))
        assert len(found.status) >= 1
        normal = found.place[0, search.NX : search.NZ + 1]
        assert naive_separation(one, moved(one, np.array([0, 0, 2 - depth]) + (1e-9 - found.gap.min()) * normal)) > 0
    found, _ = touches(one, moved(one, (0, 0, 2 + 1e-2)))
    assert len(found.status) == 0


@pytest.mark.parametrize("turn", [0.1, 0.7, 1.2])
def test_two_edges_meet_in_one_point(turn):
    # Square bars on their edges, crossed: the normal is vertical, the point on the axis.
    bar = np.array([(0, -1), (1, 0), (0, 1), (-1, 0.0)]) / math.sqrt(2)
    ends = [np.column_stack([np.full(4, x), bar]) for x in (-3.0, 3.0)]
    low = cd.Polyhedron(np.concatenate(ends))
    c, s = math.cos(turn), math.sin(turn)
    high = low.vertices @ np.array([(c, s, 0), (-s, c, 0), (0, 0, 1)])
    for gap in (-1e-3, 0.0, 4e-5):
        found, _ = touches(low, cd.Polyhedron(high + np.array([0, 0, math.sqrt(2) + gap])))
        assert len(found.status) == 1 and found.gap[0] == pytest.approx(gap, abs=1e-12)
        np.testing.assert_allclose(found.place[0, search.NX : search.NZ + 1], (0, 0, 1), atol=1e-12)
        np.testing.assert_allclose(found.place[0, search.X :], (0, 0, (math.sqrt(2) + gap) / 2), atol=1e-9)


def naive_distance(shape, centre):
    """Distance of a point from a polyhedron outside of it: the least over faces, edges and corners."""
    best, points = math.inf, shape.vertices + shape.center_of_mass
    for face in shape.faces:
        a = points[face[0]]
        for k in range(1, len(face) - 1):
            b, c = points[face[k]], points[face[k + 1]]
            grid = np.array([(u, v) for u in np.linspace(0, 1, 60) for v in np.linspace(0, 1, 60) if u + v <= 1])
            near = a + grid[:, :1] * (b - a) + grid[:, 1:] * (c - a)
            best = min(best, np.linalg.norm(near - centre, axis=1).min())
    return best


@pytest.mark.parametrize("flip", [False, True])
def test_spheres_on_polyhedra(flip):
    # Over a face, an edge and a corner of a cube in closed form; over random bodies against a fine grid of points.
    cube = cd.Box(2.0)
    r = 0.3
    for centre, normal in (((0.2, 0.1, 1.3), (0, 0, 1)), ((1.18, 0.1, 1.24), (0.6, 0, 0.8)),
                           ((1.1, 1.2, 1.2), (1 / 3, 2 / 3, 2 / 3))):  # fmt: skip
        pair = ((centre, r), cube) if flip else (cube, (centre, r))
        found, _ = touches(*pair)
        assert len(found.status) == 1 and found.gap[0] == pytest.approx(0.0, abs=1e-12)
        sign = -1 if flip else 1
        np.testing.assert_allclose(sign * found.place[0, search.NX : search.NZ + 1], normal, atol=1e-12)
    random = np.random.default_rng(5)
    for _ in range(5):
        shape = cd.Polyhedron.irregular(1.0, corners=(4, 10), seed=random)
        centre = random.normal(size=3)
        centre *= 1.6 / np.linalg.norm(centre)
        distance = naive_distance(shape, centre)
        found, _ = touches(shape, (tuple(centre), distance))
        assert len(found.status) == 1 and -0.05 < found.gap[0] <= 1e-9


def test_a_sphere_inside_leaves_by_the_nearest_face():
    found, _ = touches(cd.Box((4, 2, 2)), ((0.3, 0.0, 0.9), 0.05))
    np.testing.assert_allclose([found.gap[0], *found.place[0, 1:4]], [-0.15, 0, 0, 1], atol=1e-12)


def test_a_block_on_tiles_does_not_stumble():
    # A block that slides from tile to tile touches the next one by its upper face, also where it is in by a hair.
    for sunk in (0.0, 1e-7, 1e-6):
        found, _ = touches(box_at((1, 1, 1), (1.0, 0, -0.5)), box_at((0.4, 0.4, 0.4), (0.301, 0.1, 0.2 - sunk)),
                           velocity=(2.0, 0, -1e-6))  # fmt: skip
        np.testing.assert_allclose(found.place[:, search.NX : search.NZ + 1], [(0, 0, 1)] * 4, atol=1e-12)


def test_the_plane_that_was_crossed_last_is_the_normal():
    # A block that came from above rests on the upper face, one that came from the side leans on the side.
    for shift in ((0.9997, 0.1, 0.9996), (0.9996, 0.1, 0.9997)):
        for velocity, normal in (((0, 0, -1), (0, 0, 1)), ((-1, 0, 0), (1, 0, 0)), ((-0.1, 0, -1), (0, 0, 1))):
            found, _ = touches(cd.Box(1.0), box_at((1, 1, 1), shift), velocity=velocity)
            np.testing.assert_allclose(found.place[0, search.NX : search.NZ + 1], normal, atol=1e-12)


def test_the_axis_kept_is_as_good_as_the_best():
    # Detection with the memory of the step before, wherever it comes from, gives no deeper overlap than a fresh one,
    # but for the hysteresis: at most twice, and 1e-5 of the size.
    random = np.random.default_rng(11)
    for _ in range(10):
        one, two = random_pair(random, -1e-3)
        fresh, sim = touches(one, two)
        found = sim.contact_set.searches[-1]
        for face in range(len(one.faces)):
            found.found.index[:, touch.AXIS] = face
            sim.contact_set.detect(sim.model, Step(0.0, 1e-3, 0.0, False, False, sim.rows, sim.rows), sim.rows)
            again = sim.contact_set.searches[-1].found
            assert len(again.gap) and again.gap.min() >= 2 * fresh.gap.min() - 2e-4


@pytest.mark.parametrize("depth", [1e-3, 0.02, 0.1])
def test_the_axis_kept_hides_no_overlap(depth):
    # By an axis from the step before, the joint has the deepest place, so that it says an overlap of at least the
    # least one over all axes; where that place lies beside the face of the axis, another one is taken.
    random = np.random.default_rng(12)
    for _ in range(10):
        one, two = random_pair(random, -depth)
        _, sim = touches(one, two)
        size = sim.contact_set.sizes(sim.model).min()
        search_ = sim.contact_set.searches[-1]
        faces = [*range(len(one.faces)), *(meeting.ON_SECOND + k for k in range(len(two.faces)))]
        for axis in faces:
            search_.found.index[:, touch.AXIS] = axis
            sim.contact_set.detect(sim.model, Step(0.0, 1e-3, 0.0, False, False, sim.rows, sim.rows), sim.rows)
            assert search_.found.gap.min() <= -depth + 2e-4 * size
