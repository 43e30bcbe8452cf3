"""Pictures of bodies, point by point: balls, triangles and tubes into an image with a depth of each point.

The same look as the page in the browser (``viewer/src/stage.js``): the light comes over the reader's left shoulder.
Everything is in points of the picture, rows downwards; depths grow away from the reader, in the same unit.
"""

import numpy as np

from .._jit import kernel

LIGHT = (-0.35, 0.7, 0.62)  # right, up, towards the reader; about of length 1
MARK = 0.04  # half the width of the radius drawn on a disk, in radii
RIM = 0.93  # where the rim of a disk begins


@kernel
def shade(nx, ny, nz):
    """Brightness of a surface with the unit normal (right, up, towards the reader)."""
    return 0.36 + 0.5 * max(nx * LIGHT[0] + ny * LIGHT[1] + nz * LIGHT[2], 0.0) + 0.22 * max(nz, 0.0)


@kernel
def draw_balls(image, depth, x, y, z, radius, tint, hand, flat, ghost):
    """Balls, or with ``flat`` disks with a rim and a radius along ``hand`` (k, 2); of ghosts, one point of four."""
    height, width = depth.shape
    for k in range(x.size):
        r = radius[k]
        if not (x[k] + r >= 0.0 and x[k] - r < width and y[k] + r >= 0.0 and y[k] - r < height):
            continue
        for i in range(max(0, int(np.ceil(y[k] - r))), min(height - 1, int(np.floor(y[k] + r))) + 1):
            v = (y[k] - i) / r
            half = r * np.sqrt(max(0.0, 1.0 - v * v))
            for j in range(max(0, int(np.ceil(x[k] - half))), min(width - 1, int(np.floor(x[k] + half))) + 1):
                u = (j - x[k]) / r
                square = u * u + v * v
                if square >= 1.0 or (ghost and (i + j) % 4 != 0):
                    continue
                w = np.sqrt(1.0 - square)
                far = z[k] if flat else z[k] - r * w
                if far >= depth[i, j]:
                    continue
                depth[i, j] = far
                if flat:
                    light = 1.0 - 0.18 * square
                    across = hand[k, 0] * v - hand[k, 1] * u
                    if square > RIM * RIM or (abs(across) < MARK and hand[k, 0] * u + hand[k, 1] * v > 0.0):
                        light *= 0.35
                else:
                    light = shade(u, v, w)
                for c in range(3):
                    image[i, j, c] = tint[k, c] * light


@kernel
def draw_triangles(image, depth, corners, light, tint, ghost):
    """Triangles (k, 3, 3) with corners (x, y, depth); ``light`` (k,), ``tint`` (k, 3)."""
    height, width = depth.shape
    for k in range(len(corners)):
        ax, ay, bx, by = corners[k, 0, 0], corners[k, 0, 1], corners[k, 1, 0], corners[k, 1, 1]
        cx, cy = corners[k, 2, 0], corners[k, 2, 1]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if abs(area) < 1e-12:
            continue
        low, high = max(0, int(np.ceil(min(ay, by, cy)))), min(height - 1, int(np.floor(max(ay, by, cy))))
        left, right = max(0, int(np.ceil(min(ax, bx, cx)))), min(width - 1, int(np.floor(max(ax, bx, cx))))
        for i in range(low, high + 1):
            for j in range(left, right + 1):
                one = ((bx - j) * (cy - i) - (by - i) * (cx - j)) / area
                two = ((cx - j) * (ay - i) - (cy - i) * (ax - j)) / area
                three = 1.0 - one - two
                if one < 0.0 or two < 0.0 or three < 0.0 or (ghost and (i + j) % 4 != 0):
                    continue
                far = one * corners[k, 0, 2] + two * corners[k, 1, 2] + three * corners[k, 2, 2]
                if far < depth[i, j]:
                    depth[i, j] = far
                    for c in range(3):
                        image[i, j, c] = tint[k, c] * light[k]


@kernel
def draw_tubes(image, depth, ends, radius, tint, nearer):
    """Tubes between ``ends`` (k, 2, 3) of (x, y, depth); they count as ``nearer`` by so much. Edges are thin ones."""
    height, width = depth.shape
    for k in range(len(ends)):
        ax, ay, az = ends[k, 0, 0], ends[k, 0, 1], ends[k, 0, 2]
        dx, dy, dz = ends[k, 1, 0] - ax, ends[k, 1, 1] - ay, ends[k, 1, 2] - az
        r, square = radius[k], dx * dx + dy * dy
        low, high = min(ay, ay + dy) - r, max(ay, ay + dy) + r
        left, right = min(ax, ax + dx) - r, max(ax, ax + dx) + r
        if not (right >= 0.0 and left < width and high >= 0.0 and low < height):
            continue
        for i in range(max(0, int(np.ceil(low))), min(height - 1, int(np.floor(high))) + 1):
            for j in range(max(0, int(np.ceil(left))), min(width - 1, int(np.floor(right))) + 1):
                share = 0.0
                if square > 0.0:
                    share = min(1.0, max(0.0, ((j - ax) * dx + (i - ay) * dy) / square))
                u, v = (j - ax - share * dx) / r, (i - ay - share * dy) / r
                away = u * u + v * v
                if away >= 1.0:
                    continue
                w = np.sqrt(1.0 - away)
                far = az + share * dz - r * w - nearer
                if far < depth[i, j]:
                    depth[i, j] = far
                    for c in range(3):
                        image[i, j, c] = tint[k, c] * (0.55 + 0.45 * w)


@kernel
def coarser(image, finer):
    """The means of squares of ``finer`` points each way, as bytes."""
    height, width = image.shape[0] // finer, image.shape[1] // finer
    out = np.empty((height, width, 3), dtype=np.uint8)
    share = 255.0 / (finer * finer)
    for i in range(height):
        for j in range(width):
            for c in range(3):
                total = 0.0
                for a in range(finer):
                    for b in range(finer):
                        total += min(1.0, max(0.0, image[finer * i + a, finer * j + b, c]))
                out[i, j, c] = np.uint8(total * share + 0.5)
    return out
