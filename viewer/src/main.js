// The page: what is asked for (state), what is shown (stage), what can be pressed.
import { MODES, palette, rangeOf, short, shownValues } from "./colours.js";
import { NAMES, drawCurves } from "./curves.js";
import { Run } from "./data.js";
import { Stage } from "./stage.js";

const STATUS = ["open", "separating", "sticking", "sliding"];
const KIND = ["free", "fixed", "driven"];
const VIEWS = { reset: [-0.55, -0.95, 0.42], x: [1, 0, 0], y: [0, -1, 0], z: [0, 0, 1] };
const $ = (id) => document.getElementById(id);

const state = {
  frame: 0, playing: false, loop: true, speed: 1, colour: "speed", hold: false, range: [0, 1], forces: false,
  threshold: 0.1, slice: "none", place: 0.5, thick: 0.1, trails: false, trailed: [], body: -1, contact: -1, curve: "energies",
  follow: true, bodies: true,
};
let run, stage, frame, values;
let asked = 0; // the frame that is on its way
let strongest = 0; // force that the tubes are measured by

function tell(sentence) {
  $("message").textContent = sentence; // never as HTML: it may have the name of a file in it
  $("message").hidden = !sentence;
}

function element(tag, text, parent) {
  const out = document.createElement(tag);
  if (text !== undefined) out.textContent = text;
  parent?.append(out);
  return out;
}

const background = () => getComputedStyle(document.body).getPropertyValue("--page").trim();
const ink = () => getComputedStyle(document.body).color;

// ---- frames ---------------------------------------------------------------------------------------------------------

async function show(k) {
  k = Math.max(0, Math.min(run.count - 1, Math.round(k)));
  const order = ++asked;
  let found;
  try {
    found = await run.frame(k);
  } catch (error) {
    pause();
    tell(error.message);
    return false;
  }
  if (order !== asked) return false; // another one was asked for meanwhile
  if ($("message").dataset.passing) tell("");
  state.frame = k;
  frame = found;
  paint();
  if (state.playing) ahead(k);
  return true;
}

// The next group of frames while this one is shown, so that playing does not wait for it.
function ahead(k) {
  const next = Math.floor(k / run.index.group) + 1;
  if (next * run.index.group < run.count) run.group(next).catch(() => {});
}

function paint() {
  const mode = MODES[state.colour];
  values = shownValues(mode, frame, run.shapes);
  if (!state.hold && !mode.names) state.range = rangeOf(values, frame, run.shapes);
  stage.setFrame(frame, values);
  stage.setColours(mode, mode.names ? [0, 1] : state.range);
  paintForces();
  $("slider").value = state.frame;
  $("slider").setAttribute("aria-valuetext", `t = ${short(frame.time)}, frame ${state.frame + 1} of ${run.count}`);
  $("time").textContent = `t = ${short(frame.time)}   ${state.frame + 1} / ${run.count}`;
  paintLegend();
  paintCurves();
  paintPicked();
}

function paintForces() {
  if (state.forces && (!state.hold || !strongest)) strongest = frame.contacts.force.reduce((a, b) => Math.max(a, b), 0);
  const shown = stage.setForces(frame, state.forces && strongest > 0, state.threshold, strongest, 1);
  stage.bodies.visible = state.bodies;
  stage.shared.ghost.value = state.forces && !stage.flat ? 0.75 : 0;
  $("forces-said").textContent = state.forces
    ? `${shown} of ${frame.contactCount} contacts, above ${short(state.threshold * strongest)} of ${short(strongest)}`
    : "";
}

function paintLegend() {
  const mode = MODES[state.colour];
  const box = $("legend");
  box.replaceChildren();
  element("span", mode.label, box).className = "name";
  if (mode.names) {
    mode.names(run).forEach((name, k) => {
      const line = element("span", undefined, box);
      line.className = "named";
      const spot = element("i", "", line);
      spot.style.background = mode.colours[k % mode.colours.length];
      element("span", name, line);
    });
    return;
  }
  const bar = element("canvas", undefined, box);
  bar.width = 256;
  bar.height = 1;
  const g = bar.getContext("2d");
  const image = g.createImageData(256, 1);
  image.data.set(palette(mode));
  g.putImageData(image, 0, 0);
  const ends = element("span", undefined, box);
  ends.className = "ends";
  element("span", short(state.range[0]), ends);
  element("span", short(state.range[1]), ends);
  if (document.activeElement !== $("low")) $("low").value = short(state.range[0]);
  if (document.activeElement !== $("high")) $("high").value = short(state.range[1]);
}

function paintCurves() {
  if (!frame) return; // nothing is shown yet
  const logged = run.index.curves.time;
  const ends = [Math.min(run.times[0], ...logged.slice(0, 1)), Math.max(run.times[run.count - 1], ...logged.slice(-1))];
  drawCurves($("curves"), run.index.curves, state.curve, frame.time, ends, ink(), short);
}

// ---- picking --------------------------------------------------------------------------------------------------------

function rowOf(slot) {
  return slot < 0 ? -1 : frame.slot.indexOf(slot);
}

function paintPicked() {
  const box = $("picked");
  box.replaceChildren();
  stage.shared.chosen.value = state.body;
  stage.needed = true;
  if (state.contact >= 0) return paintContact(box);
  if (state.body < 0) {
    element("p", "Click a body or, with forces shown, a contact to read its numbers.", box);
    return;
  }
  const { shapes } = run;
  const row = rowOf(state.body);
  element("h3", `body ${shapes.number[state.body]}`, box);
  const table = element("table", undefined, box);
  const line = (name, value) => {
    const tr = element("tr", undefined, table);
    element("th", name, tr);
    element("td", value, tr);
  };
  line("kind", KIND[shapes.kind[state.body]]);
  const material = run.index.materials[shapes.material[state.body]];
  if (material !== undefined) line("material", material);
  line("mass", short(shapes.mass[state.body]));
  line("radius", short(shapes.radius[state.body]));
  if (row < 0) {
    line("at this time", "not there");
    return;
  }
  const d = shapes.dimension;
  line("position", Array.from(frame.position.subarray(3 * row, 3 * row + d), short).join(", "));
  line("speed", short(frame.speed[row]));
  line("spin", short(frame.spin[row]));
  line("pressure", short(frame.pressure[row]));
  line("contacts", String(frame.touching[row]));
  line("largest force", short(frame.force[row]));
}

function paintContact(box) {
  const c = frame.contacts;
  const k = state.contact;
  if (k >= c.count) return (state.contact = -1);
  element("h3", `contact of ${run.shapes.number[c.a[k]]} and ${run.shapes.number[c.b[k]]}`, box);
  const table = element("table", undefined, box);
  for (const [name, value] of [
    ["status", STATUS[c.status[k]]], ["normal force", short(c.force[k])], ["friction force", short(c.friction[k])],
    ["gap", short(c.gap[k])],
    ["point", Array.from(c.point.subarray(3 * k, 3 * k + run.shapes.dimension), short).join(", ")],
  ]) {
    const tr = element("tr", undefined, table);
    element("th", name, tr);
    element("td", value, tr);
  }
}

// ``more`` keeps the trail of the body that was picked before.
function pick(x, y, more = false) {
  if (!frame) return { body: null };
  state.trailed = more && state.body >= 0 ? [...state.trailed, state.body] : more ? state.trailed : [];
  state.contact = state.forces ? stage.pickContact(x, y, 8, state.threshold * strongest) : -1;
  const row = state.contact >= 0 ? -1 : stage.pickBody(x, y);
  state.body = row < 0 ? -1 : frame.slot[row];
  paintPicked();
  paintTrails();
  return state.contact >= 0 ? { contact: state.contact } : { body: state.body < 0 ? null : run.shapes.number[state.body] };
}

// Whether the way from the last point of a trail to ``place`` is shorter by the border of the cell.
function crossed(cell, points, place) {
  if (!cell || !points.length) return false;
  const step = [0, 1, 2].map((i) => place[i] - points[points.length - 3 + i]);
  return cell.shortest(step).some((x, i) => Math.abs(x - step[i]) > 1e-6 * Math.abs(step[i]));
}

// The ways of the picked bodies through all frames.
let trailing = 0;
async function paintTrails() {
  const order = ++trailing;
  const slots = [...new Set([...state.trailed, state.body])].filter((slot) => slot >= 0);
  if (!state.trails || !slots.length) return stage.setTrails([]);
  const lines = slots.map(() => [[]]);
  for (let k = 0; k < run.count; k++) {
    let one;
    try {
      one = await run.frame(k);
    } catch (error) {
      return tell(error.message);
    }
    if (order !== trailing) return; // others were asked for meanwhile
    slots.forEach((slot, k) => {
      const row = one.slot.indexOf(slot);
      const place = one.position.subarray(3 * row, 3 * row + 3);
      if (row >= 0 && crossed(one.cell, lines[k].at(-1), place)) lines[k].push([]); // came in on the other side
      if (row >= 0) lines[k].at(-1).push(...place);
      else if (lines[k].at(-1).length) lines[k].push([]); // it was away
    });
  }
  stage.setTrails(lines.flat().filter((points) => points.length > 3));
}

// ---- time -----------------------------------------------------------------------------------------------------------

// Simulated time per second of the watch: the whole run in 10 s, or as it is where it lasts from 2 to 20 s.
function pace() {
  const span = run.times[run.count - 1] - run.times[0];
  return (span >= 2 && span <= 20 ? 1 : span / 10 || 1) * state.speed;
}

let clock = null;
function play() {
  if (run.count < 2) return;
  state.playing = true;
  state.follow = false;
  $("follow").checked = false;
  const at = state.frame >= run.count - 1 ? 0 : state.frame;
  clock = { time: run.times[at], begun: performance.now(), shown: 0, since: performance.now() };
  show(at);
  $("play").textContent = "❚❚ pause";
}

function pause() {
  state.playing = false;
  $("play").textContent = "▶ play";
}

let busy = false;
async function advance(now) {
  if (busy) return;
  const time = clock.time + ((now - clock.begun) / 1000) * pace();
  let k = state.frame;
  while (k + 1 < run.count && run.times[k + 1] <= time) k++;
  if (k === state.frame) return;
  busy = true;
  await show(k);
  busy = false;
  clock.shown++;
  if (state.frame >= run.count - 1) {
    if (state.loop) play();
    else pause();
  }
}

let drawn = 0; // milliseconds that the last picture took
function loop(now) {
  requestAnimationFrame(loop);
  if (state.playing) advance(now);
  stage.controls.update();
  stage.resize();
  if (stage.needed) {
    const begin = performance.now();
    stage.render(background());
    drawn = performance.now() - begin;
    api.drawn++;
  }
  if (clock && state.playing && now - clock.since > 1000) {
    api.rate = (1000 * clock.shown) / (now - clock.since);
    clock.shown = 0;
    clock.since = now;
  }
  $("work").textContent =
    `${frame.bodies} bodies, ${frame.contactCount} contacts, ${stage.triangles} triangles; ` +
    `${(stage.sent / 1e6).toFixed(2)} MB per frame to the graphics card, ${drawn.toFixed(1)} ms to ask for it` +
    (state.playing && api.rate ? `; ${api.rate.toFixed(0)} frames/s` : "");
}

// ---- views, links, pictures -----------------------------------------------------------------------------------------

function look(name) {
  stage.view(stage.boundsOf(frame), VIEWS[name]);
  stage.setPlanes(frame);
}

function link() {
  const p = stage.camera.position.toArray();
  const t = stage.controls.target.toArray();
  const kept = { frame: state.frame, colour: state.colour, forces: +state.forces, threshold: state.threshold,
    slice: state.slice, place: state.place, thick: state.thick, curve: state.curve, trails: +state.trails,
    bodies: +state.bodies,
    camera: [...p, ...t, stage.camera.zoom].map((v) => +v.toPrecision(6)).join(",") };
  // in metres, for films: half of the height that is seen, and the slice
  const far = stage.camera.position.distanceTo(stage.controls.target);
  const half = stage.flat ? stage.extent : far * Math.tan((Math.PI / 180) * 17.5);
  kept.half = +(half / stage.camera.zoom).toPrecision(6);
  const { xyz, thick } = stage.slicing();
  if (thick > 0) kept.cut = ["xyz".indexOf(state.slice), +xyz[3].toPrecision(6), +thick.toPrecision(6)].join(",");
  if (state.body >= 0) kept.body = run.shapes.number[state.body];
  if (state.hold) kept.range = state.range.map((v) => +v.toPrecision(6)).join(",");
  return `${location.href.split("#")[0]}#${new URLSearchParams(kept)}`;
}

function readLink() {
  const kept = new URLSearchParams(location.hash.slice(1));
  const number = (name, low, high) => {
    const value = Number(kept.get(name));
    return kept.has(name) && value >= low && value <= high ? value : null;
  };
  if (kept.get("colour") in MODES) state.colour = kept.get("colour");
  if (NAMES.includes(kept.get("curve"))) state.curve = kept.get("curve");
  if (["none", "x", "y", "z"].includes(kept.get("slice"))) state.slice = kept.get("slice");
  for (const name of ["threshold", "place", "thick"]) state[name] = number(name, 0, 1) ?? state[name];
  state.forces = number("forces", 0, 1) === 1;
  state.trails = number("trails", 0, 1) === 1;
  state.bodies = number("bodies", 0, 1) !== 0;
  const range = (kept.get("range") || "").split(",").map(Number);
  if (range.length === 2 && range[0] < range[1]) Object.assign(state, { range, hold: true });
  if (kept.has("body")) state.body = run.shapes.number.indexOf(Number(kept.get("body")));
  const camera = (kept.get("camera") || "").split(",").map(Number);
  return { frame: number("frame", 0, run.count - 1), camera: camera.length === 7 && camera.every(Number.isFinite) ? camera : null };
}

// The picture with its legend and time, for print.
function picture(width) {
  const out = stage.picture(width, background());
  const g = out.getContext("2d");
  const unit = out.width / 60;
  g.font = `${0.9 * unit}px system-ui, sans-serif`;
  g.fillStyle = ink();
  g.textBaseline = "bottom";
  g.fillText(`t = ${short(frame.time)}`, unit, out.height - unit);
  const mode = MODES[state.colour];
  const left = out.width - 15 * unit;
  if (!mode.names) {
    const colours = palette(mode);
    for (let k = 0; k < 256; k++) {
      g.fillStyle = `rgb(${colours[4 * k]}, ${colours[4 * k + 1]}, ${colours[4 * k + 2]})`;
      g.fillRect(left + (14 * unit * k) / 256, out.height - 3.2 * unit, (14 * unit) / 256 + 1, 0.8 * unit);
    }
    g.fillStyle = ink();
    g.fillText(mode.label, left, out.height - 3.4 * unit);
    g.fillText(short(state.range[0]), left, out.height - unit);
    g.textAlign = "right";
    g.fillText(short(state.range[1]), left + 14 * unit, out.height - unit);
  }
  return out;
}

function savePicture() {
  picture(Number($("width").value)).toBlob((blob) => {
    const anchor = document.createElement("a");
    anchor.href = URL.createObjectURL(blob);
    anchor.download = `${run.index.name.replace(/\.[^.]*$/, "")}-${state.frame}.png`;
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
  }, "image/png");
}

async function copyLink() {
  const text = link();
  const said = [];
  try {
    history.replaceState(null, "", text); // not inside a notebook
    said.push("it is in the address bar");
  } catch {}
  try {
    await navigator.clipboard.writeText(text);
    said.push("it was copied");
  } catch {}
  $("link-said").textContent = said.join("; ") || "this page has no address of its own; save it to a file first";
}

function slice() {
  const axis = "xyz".indexOf(state.slice);
  const low = stage.bounds.min.getComponent(Math.max(axis, 0));
  const high = stage.bounds.max.getComponent(Math.max(axis, 0));
  stage.setSlice(state.slice, low + state.place * (high - low), Math.max(0.5 * state.thick * (high - low), 1e-9));
  paintForces();
}

// ---- controls -------------------------------------------------------------------------------------------------------

function settle() {
  $("colour").value = state.colour;
  $("hold").checked = state.hold;
  $("low").disabled = $("high").disabled = !state.hold;
  $("forces").checked = state.forces;
  $("bodies").checked = state.bodies;
  $("threshold").value = state.threshold;
  $("slice").value = state.slice;
  $("place").value = state.place;
  $("thick").value = state.thick;
  $("place").disabled = $("thick").disabled = state.slice === "none";
  $("curve").value = state.curve;
  $("trails").checked = state.trails;
  $("loop").checked = state.loop;
  $("speed").value = String(state.speed);
  $("slider").max = run.count - 1;
}

function wire() {
  for (const [name, mode] of Object.entries(MODES)) element("option", mode.label, $("colour")).value = name;
  for (const name of NAMES) element("option", name, $("curve")).value = name;
  const on = (id, event, act) => $(id).addEventListener(event, () => act($(id)));
  on("play", "click", () => (state.playing ? pause() : play()));
  on("slider", "input", (e) => { pause(); unfollow(); show(Number(e.value)); });
  on("back", "click", () => go(-1));
  on("forth", "click", () => go(1));
  on("speed", "change", (e) => { state.speed = Number(e.value); if (state.playing) play(); });
  on("loop", "change", (e) => (state.loop = e.checked));
  on("colour", "change", (e) => { state.colour = e.value; state.hold = false; strongest = 0; settle(); paint(); });
  on("hold", "change", (e) => { state.hold = e.checked; settle(); paint(); });
  for (const id of ["low", "high"])
    on(id, "change", () => {
      const range = [Number($("low").value), Number($("high").value)];
      if (range[0] < range[1]) state.range = range;
      paint();
    });
  on("forces", "change", (e) => { state.forces = e.checked; state.contact = -1; paint(); });
  on("bodies", "change", (e) => { state.bodies = e.checked; paint(); });
  on("threshold", "input", (e) => { state.threshold = Number(e.value); paintForces(); });
  on("slice", "change", (e) => { state.slice = e.value; settle(); slice(); });
  on("place", "input", (e) => { state.place = Number(e.value); slice(); });
  on("thick", "input", (e) => { state.thick = Number(e.value); slice(); });
  on("trails", "change", (e) => { state.trails = e.checked; paintTrails(); });
  on("curve", "change", (e) => { state.curve = e.value; paintCurves(); });
  on("save", "click", savePicture);
  on("link", "click", copyLink);
  on("follow", "change", (e) => (state.follow = e.checked));
  on("fold", "click", () => document.body.classList.toggle("folded"));
  on("dark", "click", () => {
    const now = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
    stage.needed = true;
    paintCurves();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { stage.needed = true; paintCurves(); });
  for (const name of Object.keys(VIEWS)) on(`view-${name}`, "click", () => look(name));
  $("curves").addEventListener("click", (event) => {
    const time = $("curves").timeAt(event.offsetX);
    pause();
    unfollow();
    show(nearest(time));
  });
  let down = null;
  $("stage").addEventListener("pointerdown", (e) => {
    down = [e.offsetX, e.offsetY];
    $("stage").focus({ preventScroll: true }); // the keys then turn the scene, and not what was used before
  });
  $("stage").addEventListener("pointerup", (e) => {
    if (down && Math.hypot(e.offsetX - down[0], e.offsetY - down[1]) < 4) pick(e.offsetX, e.offsetY, e.shiftKey);
    down = null;
  });
  window.addEventListener("resize", paintCurves);
  window.addEventListener("keydown", key);
}

function nearest(time) {
  let best = 0;
  run.times.forEach((t, k) => { if (Math.abs(t - time) < Math.abs(run.times[best] - time)) best = k; });
  return best;
}

function unfollow() {
  state.follow = false;
  $("follow").checked = false;
}

function go(step) {
  pause();
  unfollow();
  return show(state.frame + step);
}

const KEYS = {
  " ": () => $("play").click(), ArrowLeft: () => go(-1), ArrowRight: () => go(1), Home: () => go(-run.count),
  End: () => go(run.count), PageUp: () => go(-10), PageDown: () => go(10), r: () => look("reset"), x: () => look("x"),
  y: () => look("y"), z: () => look("z"), f: () => $("forces").click(), b: () => $("bodies").click(),
  t: () => $("trails").click(), l: () => $("loop").click(), h: () => $("hold").click(), p: savePicture, k: copyLink,
  d: () => $("dark").click(), m: () => $("fold").click(), i: () => stage.zoomBy(1.2), o: () => stage.zoomBy(1 / 1.2),
  n: (e) => pickNext(e.shiftKey ? -1 : 1), g: (e) => pickNextContact(e.shiftKey ? -1 : 1),
  c: () => {
    const names = Object.keys(MODES);
    $("colour").value = names[(names.indexOf(state.colour) + 1) % names.length];
    $("colour").dispatchEvent(new Event("change"));
  },
  "+": () => turnSpeed(1), "-": () => turnSpeed(-1), "?": () => $("help").toggleAttribute("open"),
  Escape: () => { state.body = state.contact = -1; state.trailed = []; paintPicked(); paintTrails(); },
};

// With shift the arrows turn (in 2D, move), with control they move.
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

// The next body by its number (or the one before), or the next contact by its force.
function pickNext(by) {
  const slots = Array.from(frame.slot).filter((slot) => !run.shapes.plane[slot]);
  if (!slots.length) return;
  const at = slots.indexOf(state.body);
  state.body = slots[(at + by + (at < 0 && by < 0 ? 1 : 0) + slots.length) % slots.length];
  state.contact = -1;
  paintPicked();
  paintTrails();
}

function pickNextContact(by) {
  if (!state.forces) $("forces").click();
  const { force, count } = frame.contacts;
  const shown = Array.from({ length: count }, (_, k) => k).filter((k) => force[k] >= state.threshold * strongest);
  if (!shown.length) return;
  shown.sort((a, b) => force[b] - force[a]);
  const at = shown.indexOf(state.contact);
  state.contact = shown[(at + by + (at < 0 && by < 0 ? 1 : 0) + shown.length) % shown.length];
  state.body = -1;
  paintPicked();
}

function turnSpeed(by) {
  const box = $("speed");
  box.selectedIndex = Math.max(0, Math.min(box.length - 1, box.selectedIndex + by));
  box.dispatchEvent(new Event("change"));
}

function key(event) {
  if (!api.ready) return;
  const at = event.target.tagName;
  const arrow = ARROWS[event.key];
  if (arrow && (event.shiftKey || event.ctrlKey) && at !== "INPUT" && at !== "SELECT") {
    if (event.shiftKey) stage.orbit(arrow[0] / 48, arrow[1] / 48);
    else stage.move(arrow[0] / 12, arrow[1] / 12);
    return event.preventDefault();
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typed = at === "INPUT" && ["number", "text"].includes(event.target.type);
  if (typed || (at === "SELECT" && event.key !== "Escape")) return;
  if (event.key === " " && (at === "BUTTON" || at === "SUMMARY" || at === "INPUT")) return; // it presses what has the focus
  if (at === "INPUT" && event.target.type === "range" && /^(Arrow|Home|End|Page)/.test(event.key)) return;
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act(event);
}

// ---- a run that goes on ---------------------------------------------------------------------------------------------

async function follow() {
  try {
    if (await run.refresh()) {
      if (await run.loadShapes()) stage.setShapes(run.shapes);
      $("slider").max = run.count - 1;
      if (state.follow) await show(run.count - 1);
      else await show(state.frame);
    }
    if ($("message").dataset.passing) {
      delete $("message").dataset.passing;
      tell("");
    }
  } catch (error) {
    $("message").dataset.passing = "1";
    const gone = error instanceof TypeError; // no answer at all
    tell(gone ? "The server of this page has ended; start `cdyn view` again to see more." : error.message);
  }
  setTimeout(follow, 1000);
}

// ---- begin ----------------------------------------------------------------------------------------------------------

const api = (window.cdyn = {
  state, ready: false, drawn: 0, rate: 0, show, pick, play, pause, link, picture,
  get run() { return run; },
  get stage() { return stage; },
  get frame() { return frame; },
  get values() { return values; },
});

async function begin() {
  try {
    const served = document.body.dataset.served;
    let index;
    if (served) {
      const answer = await fetch("index", { cache: "no-store" });
      if (!answer.ok) throw new Error(await answer.text());
      index = await answer.json();
    } else {
      try {
        index = JSON.parse($("index").textContent);
      } catch {
        throw new Error("This page is cut off; take a copy that is whole, or export the run again.");
      }
    }
    run = new Run(index, served ? "" : null);
    document.title = index.name;
    $("name").textContent = index.name;
    $("about").textContent = index.about;
    await run.loadShapes();
    try {
      stage = new Stage($("stage"));
    } catch {
      throw new Error("This browser has no WebGL 2, which the page draws with; try another browser, or `cdyn film`.");
    }
    stage.setShapes(run.shapes);
    stage.resize(true);
    wire();
    const kept = readLink();
    $("follow-line").hidden = !served;
    for (const name of "xyz") $(`view-${name}`).hidden = stage.flat;
    settle();
    const start = kept.frame ?? (served ? run.count - 1 : 0);
    frame = await run.frame(start);
    state.follow = served && kept.frame === null;
    $("follow").checked = state.follow;
    // the box of the whole run, by its first and last frame
    const box = stage.boundsOf(frame);
    if (run.count > 1) {
      box.union(stage.boundsOf(await run.frame(0)));
      try {
        box.union(stage.boundsOf(await run.frame(run.count - 1)));
      } catch (error) {
        tell(error.message);
      }
    }
    stage.view(box, VIEWS.reset);
    if (kept.camera) {
      stage.camera.position.set(...kept.camera.slice(0, 3));
      stage.controls.target.set(...kept.camera.slice(3, 6));
      stage.camera.zoom = kept.camera[6];
      stage.camera.updateProjectionMatrix();
    }
    await show(start);
    if (state.slice !== "none") slice();
    paintTrails();
    document.body.classList.add("ready");
    for (const part of document.querySelectorAll("[inert]")) part.inert = false; // there is something to act on
    api.ready = true;
    requestAnimationFrame(loop);
    if (served) setTimeout(follow, 1000);
  } catch (error) {
    tell(error.message || String(error));
    api.failed = true;
  }
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
