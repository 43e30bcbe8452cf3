// What the bodies are coloured by, and the colours.

// viridis, in eight steps; named ones are for kinds and materials.
const VIRIDIS = ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"];
const SET = ["#c9b48f", "#7f9fbf", "#b07aa1", "#59a14f", "#e15759", "#f28e2b", "#76b7b2", "#edc948", "#9c755f", "#bab0ac"];
const KINDS = ["#c9b48f", "#9a9a9a", "#7f9fbf"]; // free, fixed, driven

export const FORCE = ["#5b0f00", "#b2182b", "#ef6548", "#fdbb84"];

export const MODES = {
  kind: { label: "kind", names: () => ["free", "fixed", "driven"], colours: KINDS, value: (f, s) => pick(f, s.kind) },
  speed: { moving: true, label: "speed", value: (f) => f.speed },
  spin: { moving: true, label: "spin", value: (f) => f.spin },
  contacts: { moving: true, label: "number of contacts", value: (f) => f.touching },
  pressure: { moving: true, label: "pressure", value: (f) => f.pressure },
  force: { moving: true, label: "largest force", value: (f) => f.force },
  material: { label: "material", names: (run) => run.index.materials, colours: SET, value: (f, s) => pick(f, s.material) },
  birth: { label: "birth (time)", value: (f, s) => pick(f, s.birth) },
  number: { label: "number", value: (f, s) => pick(f, s.number) },
};

function pick(frame, column) {
  const out = new Float32Array(frame.bodies);
  for (let k = 0; k < out.length; k++) out[k] = column[frame.slot[k]];
  return out;
}

export function rgb(hex) {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

// 256 colours as bytes: a run through ``stops``, or the stops themselves where they are names.
export function palette(mode) {
  const out = new Uint8Array(4 * 256);
  const stops = (mode.colours || VIRIDIS).map(rgb);
  for (let k = 0; k < 256; k++) {
    if (mode.colours) out.set(stops[k % stops.length], 4 * k);
    else {
      const x = (k / 255) * (stops.length - 1);
      const i = Math.min(stops.length - 2, Math.floor(x));
      for (let c = 0; c < 3; c++) out[4 * k + c] = Math.round(stops[i][c] * (1 - x + i) + stops[i + 1][c] * (x - i));
    }
    out[4 * k + 3] = 255;
  }
  return out;
}

export const NONE = -1e29; // of a body that has no colour

// Bodies that cannot move have neither speed nor pressure worth a colour.
export function shownValues(mode, frame, shapes) {
  const out = mode.value(frame, shapes);
  if (!mode.moving) return out;
  return out.map((value, k) => (shapes.kind[frame.slot[k]] === 1 ? NONE : value));
}

// The range of a colouring over the free bodies of a frame; a two-hundredth of them may lie beyond each end.
export function rangeOf(values, frame, shapes) {
  const free = values.filter((_, k) => shapes.kind[frame.slot[k]] === 0);
  if (!free.length) return [0, 1];
  free.sort();
  const beyond = Math.floor(free.length / 200);
  const [low, high] = [free[beyond], free[free.length - 1 - beyond]];
  return low === high ? [low, low + (Math.abs(low) || 1)] : [low, high];
}

export function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(2).replace("e+", "e");
  return String(Number(value.toPrecision(4)));
}
