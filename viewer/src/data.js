// What travels: boxes of columns (views/packing.py), from the page itself or from the server that opened the file.

const STEPS = 64;
const TURN = 4095;

async function inflate(bytes) {
  if (typeof DecompressionStream === "undefined")
    throw new Error("This browser cannot unpack the page; use a version of 2023 or later.");
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The columns of a box by name, and what is said about them.
export async function unbox(packed) {
  let data;
  try {
    data = await inflate(packed);
  } catch (error) {
    if (error.message.startsWith("This browser")) throw error;
    throw new Error("A part of this run is damaged or cut off; export it again, or take a copy that is whole.");
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let at = 4 + view.getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(data.subarray(4, at)));
  const columns = {};
  for (const [name, kind, count, wide] of head.columns) {
    const bits = new Uint32Array(count);
    for (let plane = 0; plane < wide; plane++, at += count)
      for (let k = 0, shift = 8 * plane; k < count; k++) bits[k] |= data[at + k] << shift;
    if (kind === "f") columns[name] = new Float32Array(bits.buffer);
    else {
      const out = new Int32Array(count);
      for (let k = 0; k < count; k++) out[k] = (bits[k] >>> 1) ^ -(bits[k] & 1);
      columns[name] = out;
    }
  }
  return { columns, about: head.about };
}

function uncoded(codes, floor) {
  const out = new Float32Array(codes.length);
  for (let k = 0; k < codes.length; k++)
    out[k] = Math.sign(codes[k]) * floor * (2 ** (Math.abs(codes[k]) / STEPS) - 1);
  return out;
}

// A property that is computed when it is first asked for.
function later(object, name, make) {
  let value;
  Object.defineProperty(object, name, { get: () => (value ??= make()) });
}

function summed(differences) {
  const out = new Int32Array(differences.length);
  for (let k = 0, sum = 0; k < out.length; k++) out[k] = sum += differences[k];
  return out;
}

// The periodic cell as the page uses it: vectors, the shares of a place along them, the shortest way to an image.
function openCell(said) {
  if (!said) return null;
  const rows = [0, 3, 6].map((k) => said.vectors.slice(k, k + 3));
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const volume = dot(rows[0], cross(rows[1], rows[2]));
  const dual = rows.map((_, k) => cross(rows[(k + 1) % 3], rows[(k + 2) % 3]).map((x) => x / volume));
  const around = [0, 1, 2].filter((k) => said.periodic[k]);
  const shortest = (v) => {
    const shares = around.map((k) => Math.round(dot(dual[k], v)));
    return [0, 1, 2].map((i) => around.reduce((x, k, n) => x - shares[n] * rows[k][i], v[i]));
  };
  return { rows, shortest };
}

// The frames of a group: places and turns in slots of all bodies, numbers and contacts.
function openGroup({ columns, about }, shapes) {
  const { quantum, dimension: d, count, turned, simple, plane } = shapes;
  const last = new Int32Array(7 * count);
  return about.frames.map((said, k) => {
    const column = (name) => columns[`${k}.${name}`];
    const slot = summed(column("slot"));
    const frame = { time: said.time, step: said.step, cell: openCell(said.cell), slot, bodies: slot.length };
    const position = (frame.position = new Float32Array(3 * slot.length));
    for (let i = 0; i < d; i++) {
      const change = column("xyz"[i]);
      for (let j = 0; j < slot.length; j++)
        position[3 * j + i] = quantum * (last[7 * slot[j] + i] += change[j]);
    }
    const turn = (frame.turn = new Float32Array(4 * slot.length));
    const which = d === 3 ? [0, 1, 2, 3] : [0, 3];
    const changes = which.map((i) => column(`q${i}`));
    for (let j = 0, row = 0; j < slot.length; j++) {
      if (!turned[slot[j]]) {
        turn[4 * j] = 1;
        continue;
      }
      let size = 0;
      which.forEach((i, c) => {
        turn[4 * j + i] = (last[7 * slot[j] + 3 + i] += changes[c][row]) / TURN;
        size += turn[4 * j + i] ** 2;
      });
      size = Math.sqrt(size) || 1;
      for (let i = 0; i < 4; i++) turn[4 * j + i] /= size;
      row++;
    }
    for (const name of ["speed", "spin", "pressure"]) frame[name] = uncoded(column(name), said[name]);
    frame.contactCount = column("a") ? column("a").length : 0;
    // Contacts are most of the work, and not always looked at: opened when they are.
    later(frame, "contacts", () => openContacts(column, said, frame, { quantum, d, count, simple, plane, shapes }));
    later(frame, "touching", () => {
      const out = new Float32Array(slot.length);
      const { rowA, rowB } = frame.contacts;
      for (let j = 0; j < rowA.length; j++) {
        out[rowA[j]]++;
        out[rowB[j]]++;
      }
      return out;
    });
    later(frame, "force", () => {
      const out = new Float32Array(slot.length);
      const { rowA, rowB, force } = frame.contacts;
      for (let j = 0; j < rowA.length; j++) {
        if (force[j] > out[rowA[j]]) out[rowA[j]] = force[j];
        if (force[j] > out[rowB[j]]) out[rowB[j]] = force[j];
      }
      return out;
    });
    return frame;
  });
}

function openContacts(column, said, frame, { quantum, d, count, simple, plane, shapes }) {
  if (!column("a")) return { count: 0, rowA: [], rowB: [], force: new Float32Array(0), point: new Float32Array(0) };
  const a = summed(column("a"));
  const b = column("b").map((difference, k) => a[k] + difference);
  const rowOf = new Int32Array(count).fill(-1);
  frame.slot.forEach((slot, row) => (rowOf[slot] = row));
  const rowA = a.map((slot) => rowOf[slot]);
  const rowB = b.map((slot) => rowOf[slot]);
  const force = uncoded(column("force"), said.force);
  const friction = new Float32Array(a.length);
  column("friction").forEach((share, k) => (friction[k] = (Math.abs(force[k]) * share) / 64));
  const gap = uncoded(column("gap").map((code) => 8 * code), said.gap);
  const point = new Float32Array(3 * a.length);
  const offset = [0, 1, 2].map((i) => (i < d ? column("uvw"[i]) : null));
  const normals = new Map();
  let row = 0;
  for (let k = 0; k < a.length; k++) {
    const hold = plane[b[k]] ? rowA[k] : rowB[k];
    if ((simple[a[k]] || plane[a[k]]) && (simple[b[k]] || plane[b[k]])) {
      if (plane[a[k]] || plane[b[k]]) {
        const wall = plane[a[k]] ? rowA[k] : rowB[k];
        if (!normals.has(wall)) normals.set(wall, shapes.normalOf(frame, wall));
        const n = normals.get(wall);
        const r = shapes.radius[frame.slot[hold]];
        for (let i = 0; i < 3; i++) point[3 * k + i] = frame.position[3 * hold + i] - r * n[i];
      } else {
        const share = shapes.radius[a[k]] / (shapes.radius[a[k]] + shapes.radius[b[k]]);
        const [p, q] = [3 * rowA[k], 3 * rowB[k]];
        for (let i = 0; i < 3; i++) point[3 * k + i] = frame.position[q + i] - frame.position[p + i];
        const way = point.subarray(3 * k, 3 * k + 3); // from the first to the second
        if (frame.cell) way.set(frame.cell.shortest(way));
        for (let i = 0; i < 3; i++) way[i] = frame.position[q + i] - (1 - share) * way[i];
      }
    } else {
      for (let i = 0; i < d; i++) point[3 * k + i] = frame.position[3 * hold + i] + quantum * offset[i][row];
      row++;
    }
  }
  return { count: a.length, a, b, rowA, rowB, force, friction, gap, point, status: column("status") };
}

export function rotated(q, v) {
  const [w, x, y, z] = q;
  const t = [2 * (y * v[2] - z * v[1]), 2 * (z * v[0] - x * v[2]), 2 * (x * v[1] - y * v[0])];
  return [
    v[0] + w * t[0] + y * t[2] - z * t[1],
    v[1] + w * t[1] + z * t[0] - x * t[2],
    v[2] + w * t[2] + x * t[1] - y * t[0],
  ];
}

function openShapes({ columns, about }) {
  const count = columns.number.length;
  const shapes = { ...columns, quantum: about.quantum, dimension: about.dimension, count };
  shapes.turned = shapes.simple.map((simple) => (about.dimension === 2 ? 1 : 1 - simple));
  const planeOf = new Map(Array.from(columns.plane_body, (slot, k) => [slot, k]));
  shapes.normalOf = (frame, row) => {
    const k = planeOf.get(frame.slot[row]);
    const n = Array.from(columns.plane_normal.subarray(3 * k, 3 * k + 3));
    return rotated(frame.turn.subarray(4 * row, 4 * row + 4), n);
  };
  return shapes;
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let k = 0; k < raw.length; k++) out[k] = raw.charCodeAt(k);
  return out;
}

// A run: its index, its shapes, its frames by number. Groups are opened when asked for, and the last used are kept.
export class Run {
  constructor(index, base) {
    this.base = base;
    this.groups = new Map();
    this.shapesVersion = null;
    this.take(index);
  }

  take(index) {
    this.index = index;
    this.times = index.times;
    this.count = index.times.length;
  }

  async bytes(name) {
    if (this.base === null) {
      const element = document.getElementById(`part-${name}`);
      const text = element ? element.textContent.trim() : "";
      if (text.length !== this.index.lengths[name])
        throw new Error(
          `This page is cut off: ${name === "shapes" ? "the bodies are" : "some of its frames are"} missing; ` +
            "take a copy that is whole, or export the run again.",
        );
      return fromBase64(text);
    }
    const answer = await fetch(`${this.base}${name}`, { cache: "no-store" });
    if (!answer.ok) throw new Error((await answer.text()) || `The server answered ${answer.status}.`);
    return new Uint8Array(await answer.arrayBuffer());
  }

  async loadShapes() {
    if (this.shapesVersion === this.index.bodies) return false;
    this.shapes = openShapes(await unbox(await this.bytes("shapes")));
    this.shapesVersion = this.index.bodies;
    this.groups.clear();
    return true;
  }

  // Frames of group g; one that was not full is asked for again when it has grown.
  async group(g) {
    const expected = Math.min(this.index.group, this.count - g * this.index.group);
    const known = this.groups.get(g);
    if (known && known.expected === expected) {
      this.groups.delete(g);
      this.groups.set(g, known);
      return known.frames;
    }
    const frames = (async () =>
      openGroup(await unbox(await this.bytes(this.base === null ? `${g}` : `group/${g}`)), this.shapes))();
    this.groups.set(g, { expected, frames });
    frames.catch(() => this.groups.delete(g));
    while (this.groups.size > Math.max(4, Math.floor(3e8 / (60 * this.index.group * (this.shapes.count + 1)))))
      this.groups.delete(this.groups.keys().next().value);
    return frames;
  }

  async frame(k) {
    const g = Math.floor(k / this.index.group);
    const frames = await this.group(g);
    const found = frames[k - g * this.index.group];
    if (!found) throw new Error(`Frame ${k} of this run is missing; export it again, or take a copy that is whole.`);
    return found;
  }

  // New frames, if there are any: true.
  async refresh() {
    const answer = await fetch(`${this.base}index`, { cache: "no-store" });
    if (!answer.ok) throw new Error((await answer.text()) || `The server answered ${answer.status}.`);
    const index = await answer.json();
    const grown = index.times.length !== this.count || index.bodies !== this.index.bodies;
    if (index.stamp !== this.index.stamp) this.groups.clear();
    this.take(index);
    return grown;
  }
}
