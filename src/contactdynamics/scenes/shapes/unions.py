"""Volume, centre and second moments of unions of disks and of spheres, exact, over their boundary.

The boundary is made of the parts of circles (spheres) that lie inside no other disk (sphere). With x = c + R n on the
circle or sphere of centre c and radius R, in d dimensions, the divergence theorem gives

    V = sum R^(d-1) int x.n / d,   int x_i = sum R^(d-1) int x_i x.n / (d + 1),
    int x_i x_j = sum R^(d-1) int x_i x_j x.n / (d + 2),

which asks for the integrals of 1, n_i, n_i n_j, n_i n_j n_k over the free part of the unit circle or sphere. The free
part S of a sphere is what caps n.a > cos leave, and is bounded by arcs. A harmonic polynomial Y of degree l is
-Laplacian(Y) / (l (l + 1)) there, so that its integral over S is that of -dY/dnu / (l (l + 1)) along the arcs, nu the
direction out of S; the area of S is a sum of signed triangles and sectors, known up to whole spheres (4 pi), which a
count of some points decides. Arcs are integrated by Gauss's rule with 24 nodes, which has trigonometric polynomials of
degree 4 over a whole turn to rounding. Spheres that are cut by as many others are done together.

Errors are of the order of rounding; where two circles on a sphere coincide to less than 1e-8 they count as one, which
leaves errors of this order.
"""

import math

import numpy as np

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_SAME = 1e-8  # of a radius: circles on a sphere that are nearer count as one
_POLE = np.array([2.0, -3.0, 6.0]) / 7.0  # a unit vector, of no likely symmetry


def _spiral(count: int) -> np.ndarray:
    """Points (count, 3) spread evenly over the unit sphere."""
    z = 1 - (2 * np.arange(count) + 1) / count
    angle = math.pi * (3 - math.sqrt(5)) * np.arange(count)
    return np.stack([np.sqrt(1 - z * z) * np.cos(angle), np.sqrt(1 - z * z) * np.sin(angle), z], axis=1)


_SPREAD = _spiral(200)  # tells how much of a sphere is free, to much less than half of it


def union_of_disks(radii, centres):
    """Area, first (2,) and second moments (2, 2) about the origin of a union of disks; (k,) and (k, 2)."""
    volume, first, second = 0.0, np.zeros(2), np.zeros((2, 2))
    for i, (r, c) in enumerate(zip(radii, centres, strict=True)):
        towards, cosine, hidden = _cuts(i, radii, centres)
        if hidden:
            continue
        middle = np.arctan2(towards[:, 1], towards[:, 0])
        _, begin, end = _free_arcs(middle[None], np.arccos(cosine)[None])
        angle, weight = _nodes(begin, end)
        n, w = np.stack([np.cos(angle), np.sin(angle)], axis=-1).reshape(-1, 2), weight.ravel()
        moments = (w.sum(), w @ n, (w[:, None] * n).T @ n, np.einsum("pi,pj,pk->ijk", w[:, None] * n, n, n))
        one = _integrals(np.array([r]), c[None], [np.asarray(part)[None] for part in moments])
        volume, first, second = volume + one[0], first + one[1], second + one[2]
    return volume, first, second


def union_of_spheres(radii, centres):
    """Volume, first (3,) and second moments (3, 3) about the origin of a union of spheres; (k,) and (k, 3)."""
    volume, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    cut = {}  # by the number of others that cut a sphere: which they are, and what these hide
    for i in range(len(radii)):
        axes, cosine, hidden = _cuts(i, radii, centres)
        if not hidden:
            cut.setdefault(len(axes), []).append((i, axes, cosine))
    for some in cut.values():
        i, axes, cosine = (np.array(part) for part in zip(*some, strict=True))
        one = _integrals(radii[i], centres[i], _free_spheres(axes, cosine))
        volume, first, second = volume + one[0], first + one[1], second + one[2]
    return volume, first, second


def _integrals(r, c, moments):
    """What the free parts of g circles or spheres give, from their integrals of 1, n, n n and n n n, each (g, ...)."""
    d = c.shape[1]
    one, n, nn, nnn = moments
    shared = (c * n).sum(axis=1) + r * one  # int x.n
    towards = np.einsum("gij,gj->gi", nn, c) + r[:, None] * n  # int n x.n
    pairs = np.einsum("gijk,gk->gij", nnn, c) + r[:, None, None] * nn  # int n n x.n
    area = r ** (d - 1)
    x = c * shared[:, None] + r[:, None] * towards
    cross = np.einsum("g,gi,gj->ij", area * r, c, towards)
    xx = np.einsum("g,gi,gj->ij", area * shared, c, c) + cross + cross.T + np.einsum("g,gij->ij", area * r * r, pairs)
    return float(area @ shared) / d, area @ x / (d + 1), xx / (d + 2)


def _cuts(i, radii, centres):
    """What the others hide of the circle or sphere i: n . axis > cosine for each; and whether it is hidden as a whole.

    Axes (m, d) and cosines (m,) of those that cut it. Of twins the first one counts.
    """
    offset, r, s = centres - centres[i], radii[i], radii
    distance = np.sqrt((offset**2).sum(axis=1))
    twin = (distance == 0) & (s == r)  # itself among them
    if twin[:i].any() or ((distance + r <= s) & ~twin).any():
        return offset[:0], distance[:0], True
    cut = (distance < r + s) & (distance + s > r) & ~twin
    offset, s, distance = offset[cut], s[cut], distance[cut]
    cosine = ((distance - s) * (distance + s) + r * r) / (2 * distance * r)
    return offset / distance[:, None], np.clip(cosine, -1.0, 1.0), False


def _free_arcs(middle, half):
    """The arcs (row, begin, end) of whole turns that are left by the arcs ``middle`` (m, k) +- ``half`` (m, k).

    Where ``half`` is negative nothing is hidden.
    """
    turn = 2 * math.pi
    begin = np.where(half > 0, (middle - half) % turn, turn)
    end = np.where(half > 0, begin + 2 * half, turn)
    begin = np.concatenate([begin, np.zeros_like(begin)], axis=1)  # what reaches beyond a turn goes on at its start
    end = np.concatenate([np.minimum(end, turn), np.maximum(end - turn, 0.0)], axis=1)
    order = np.argsort(begin, axis=1)
    begin, end = np.take_along_axis(begin, order, axis=1), np.take_along_axis(end, order, axis=1)
    rows = len(begin)
    begin = np.concatenate([begin, np.full((rows, 1), turn)], axis=1)
    reached = np.maximum.accumulate(np.concatenate([np.zeros((rows, 1)), end], axis=1), axis=1)
    row, at = np.nonzero(begin > reached)
    return row, reached[row, at], begin[row, at]


def _nodes(begin, end):
    """Angles and weights (m, 24) of Gauss's rule on arcs."""
    half = 0.5 * (end - begin)[:, None]
    return 0.5 * (end + begin)[:, None] + half * _NODES, half * _WEIGHTS


def _free_spheres(axes, cosine):
    """Integrals of 1, n, n n, n n n, (g,) to (g, 3, 3, 3), over g unit spheres without their caps n . axis > cosine.

    Axes (g, m, 3) and cosines (g, m).
    """
    delta, (g, m) = np.eye(3), cosine.shape
    radius = np.sqrt(np.maximum(0.0, 1 - cosine**2))
    u = _cross(axes, delta[np.argmin(np.abs(axes), axis=2)])
    u /= np.sqrt((u**2).sum(axis=2))[..., None]
    v = _cross(axes, u)
    middle, half = _hidden_arcs(axes, cosine, radius, u, v)
    row, begin, end = _free_arcs(middle.reshape(g * m, m), half.reshape(g * m, m))
    angle, weight = _nodes(begin, end)
    a, h, rho, u, v = (part.reshape(g * m, *part.shape[2:])[row] for part in (axes, cosine, radius, u, v))
    owner = row // max(m, 1)

    def at(angle):  # (m, q) -> (m, q, 3)
        flat = np.cos(angle)[..., None] * u[:, None] + np.sin(angle)[..., None] * v[:, None]
        return (h[:, None] * a)[:, None] + rho[:, None, None] * flat

    n = at(angle)
    # rho nu = a - h n; rho is in the length of the arc too
    out = (weight[..., None] * (a[:, None] - h[:, None, None] * n)).transpose(0, 2, 1)
    ends = at(np.stack([begin, end], axis=1))
    area = _free_areas(owner, ends[:, 0], ends[:, 1], a, h, end - begin, axes, cosine)
    total, crossed = _by_owner(g, owner, out.sum(axis=2)), _by_owner(g, owner, out @ n)
    mixed = out @ (n[..., None] * n[..., None, :]).reshape(*n.shape[:2], 9)
    mixed = _by_owner(g, owner, mixed).reshape(g, 3, 3, 3)
    mixed = mixed + mixed.transpose(0, 2, 1, 3) + mixed.transpose(0, 2, 3, 1)
    one = -0.5 * total
    two = area[:, None, None] / 3 * delta - (crossed + crossed.transpose(0, 2, 1)) / 6
    three = _spread(one, delta) / 5 - (mixed - _spread(total, delta) / 5) / 12
    return area, one, two, three


def _by_owner(count, owner, values):
    """Sums (count, ...) of the ``values`` (m, ...) that belong to the same ``owner`` (m,)."""
    out = np.zeros((count, *values.shape[1:]))
    np.add.at(out, owner, values)
    return out


def _cross(a, b):
    """The vector product along the last axis; NumPy's own takes five times as long for few."""
    (x, y, z), (u, v, w) = np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)


def _spread(vector, delta):
    """delta_ij v_k + delta_ik v_j + delta_jk v_i of the vectors (g, 3)."""
    first = delta[:, :, None] * vector[:, None, None]
    return first + first.transpose(0, 1, 3, 2) + first.transpose(0, 3, 1, 2)


def _hidden_arcs(axes, cosine, radius, u, v):
    """Middle and half angle (g, m, m) of the arc of circle j that cap k hides; negative where it hides nothing."""
    turned = axes.transpose(0, 2, 1)
    across, along = radius[..., None] * (u @ turned), radius[..., None] * (v @ turned)
    lean = axes @ turned
    bound = cosine[:, None, :] - cosine[..., None] * lean
    reach = np.hypot(across, along)
    half = np.arccos(np.clip(bound / np.where(reach > 0, reach, 1.0), -1.0, 1.0))
    half = np.where(bound >= reach, -1.0, np.where(bound <= -reach, math.pi, half))
    same = (reach < _SAME) & (np.abs(bound) < _SAME)  # one circle: of equal caps the first counts, opposite ones meet
    number = np.arange(axes.shape[1])
    half = np.where(same, np.where((lean < 0) | (number[None, :] < number[:, None]), math.pi, -1.0), half)
    half[:, number, number] = -1.0
    return np.arctan2(along, across), half


def _free_areas(owner, first, last, axis, cosine, turn, axes, bounds) -> np.ndarray:
    """Areas (g,) of unit spheres without their caps, from the arcs of their boundaries, which turn about their axis."""
    poles = np.broadcast_to(_POLE, first.shape)
    fans = _triangle(poles, first, last) + (1 - cosine) * turn - _triangle(axis, first, last)
    area = -_by_owner(len(axes), owner, fans)
    share = (_SPREAD @ axes.transpose(0, 2, 1) <= bounds[:, None]).all(axis=2).mean(axis=1)
    return area + 4 * math.pi * np.rint(share - area / (4 * math.pi))


def _triangle(a, b, c):
    """Signed areas (m,) of triangles on the unit sphere (van Oosterom and Strackee 1983)."""
    volume = (a * _cross(b, c)).sum(axis=1)
    return 2 * np.arctan2(volume, 1 + (a * b).sum(axis=1) + (b * c).sum(axis=1) + (c * a).sum(axis=1))
