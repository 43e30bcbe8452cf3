/* The sweep over simple contacts of gauss_seidel.py, written in C: the yardstick of `cdyn bench sweep`.
   rows: bodies of 8 doubles (v, s, 1/m, c); contact: rows of 8 doubles (n, P, target, gamma). */
#include <math.h>
#include <stdint.h>

double sweep(double *rows, const uint32_t *a, const uint32_t *b, double *contact, const uint32_t *order,
             int64_t count, double kappa) {
  double change = 0.0, factor = 1.0 / (1.0 + kappa);
  for (int64_t k = 0; k < count; k++) {
    uint32_t at = order[k];
    double *ra = rows + 8 * (int64_t)a[at], *rb = rows + 8 * (int64_t)b[at], *c = contact + 8 * (int64_t)at;
    double nx = c[0], ny = c[1], nz = c[2], px = c[3], py = c[4], pz = c[5];
    double sx = ra[3] + rb[3], sy = ra[4] + rb[4], sz = ra[5] + rb[5];
    double ux = rb[0] - ra[0] - (sy * nz - sz * ny);
    double uy = rb[1] - ra[1] - (sz * nx - sx * nz);
    double uz = rb[2] - ra[2] - (sx * ny - sy * nx);
    double ma = ra[6], mb = rb[6], wn = ma + mb, step = 1.0 / wn;
    double un = ux * nx + uy * ny + uz * nz, pn = px * nx + py * ny + pz * nz;
    double new_ = pn - (un - c[6]) * step;
    if (!(new_ > 0.0)) new_ = 0.0;
    step *= factor;
    double off = pn - step * un;
    double tx = px - step * ux - off * nx, ty = py - step * uy - off * ny, tz = pz - step * uz - off * nz;
    double square = tx * tx + ty * ty + tz * tz, limit = c[7] * new_;
    if (square > limit * limit) {
      double shrink = limit / sqrt(square);
      tx *= shrink; ty *= shrink; tz *= shrink;
    }
    tx += new_ * nx; ty += new_ * ny; tz += new_ * nz;
    double dx = tx - px, dy = ty - py, dz = tz - pz;
    c[3] = tx; c[4] = ty; c[5] = tz;
    ra[0] -= ma * dx; ra[1] -= ma * dy; ra[2] -= ma * dz;
    rb[0] += mb * dx; rb[1] += mb * dy; rb[2] += mb * dz;
    double mx = kappa * (ny * dz - nz * dy), my = kappa * (nz * dx - nx * dz), mz = kappa * (nx * dy - ny * dx);
    ra[3] -= ma * mx; ra[4] -= ma * my; ra[5] -= ma * mz;
    rb[3] -= mb * mx; rb[4] -= mb * my; rb[5] -= mb * mz;
    change += wn * (dx * dx + dy * dy + dz * dz);
  }
  return change;
}
