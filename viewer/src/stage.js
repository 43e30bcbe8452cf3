// What is drawn: balls as impostors, meshes, planes, forces, trails. All bodies have their place in one texture that is
// sent to the graphics card once per frame; what they are made of is sent once.
import * as THREE from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { FORCE, palette, rgb } from "./colours.js";
import { rotated } from "./data.js";

const WIDTH = 2048; // of the textures
const ABSENT = 1e30;

const COMMON = /* glsl */ `
  precision highp float;
  precision highp sampler2D;
  uniform mat4 modelViewMatrix, projectionMatrix;
  uniform sampler2D places, turns, colours;
  uniform vec2 range;
  uniform float named, chosen, ghost;
  uniform vec4 slice; // normal and place; w.r.t. it bodies farther than thick are not shown
  uniform float thick;
`;
const BODY = /* glsl */ `
  vec4 placeOf(float body) {
    int k = int(body + 0.5);
    return texelFetch(places, ivec2(k % ${WIDTH}, k / ${WIDTH}), 0);
  }
  vec3 turned(float body, vec3 v) {
    int k = int(body + 0.5);
    vec4 q = texelFetch(turns, ivec2(k % ${WIDTH}, k / ${WIDTH}), 0);
    vec3 t = 2.0 * cross(q.yzw, v);
    return v + q.x * t + cross(q.yzw, t);
  }
  bool hidden(vec4 place) {
    return place.w > 0.5e30 || (thick > 0.0 && abs(dot(place.xyz, slice.xyz) - slice.w) > thick);
  }
  vec3 colourOf(float value) {
    if (value < -0.5e29) return vec3(0.6); // what has no colour here
    float at = named > 0.5 ? (value + 0.5) / 256.0 : clamp((value - range.x) / (range.y - range.x), 0.002, 0.998);
    return texture(colours, vec2(at, 0.5)).rgb;
  }
`;
const GHOST = /* glsl */ `
  void fade() { // as many of 16 pixels as shall be seen through
    ivec2 p = ivec2(gl_FragCoord.xy) & 3;
    int order[16] = int[16](0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5);
    if (float(order[p.x + 4 * p.y]) + 0.5 < 16.0 * ghost) discard;
  }
`;

const BALL_VERTEX = /* glsl */ `
  ${COMMON}
  in vec3 position; // corner of the square
  in vec4 ball; // centre in the body, radius
  in float body;
  out vec3 at, middle, tint;
  out float radius, mark;
  out vec2 pointer;
  ${BODY}
  void main() {
    vec4 place = placeOf(body);
    if (hidden(place)) { gl_Position = vec4(2.0, 2.0, 2.0, 1.0); return; }
    middle = (modelViewMatrix * vec4(place.xyz + turned(body, ball.xyz), 1.0)).xyz;
    radius = ball.w;
    tint = colourOf(place.w);
    mark = abs(body - chosen) < 0.5 ? 1.0 : 0.0;
    pointer = turned(body, vec3(1.0, 0.0, 0.0)).xy;
    vec3 right = vec3(1.0, 0.0, 0.0), up = vec3(0.0, 1.0, 0.0);
    float size = radius * 1.02;
    if (projectionMatrix[2][3] != 0.0) { // perspective: a square across the line of sight that covers the outline
      float far = max(length(middle), radius * 1.001);
      vec3 sight = middle / far;
      right = normalize(cross(sight, abs(sight.y) < 0.9 ? up : right));
      up = cross(right, sight);
      size *= far / sqrt(far * far - radius * radius);
    }
    at = middle + size * (position.x * right + position.y * up);
    gl_Position = projectionMatrix * vec4(at, 1.0);
  }
`;
const BALL_FRAGMENT = /* glsl */ `
  ${COMMON}
  uniform float flat2;
  in vec3 at, middle, tint;
  in float radius, mark;
  in vec2 pointer;
  out vec4 colour;
  ${GHOST}
  void main() {
    fade();
    vec3 from = vec3(0.0), sight;
    if (projectionMatrix[2][3] != 0.0) sight = normalize(at);
    else { from = vec3(at.xy, middle.z + 2.0 * radius); sight = vec3(0.0, 0.0, -1.0); }
    vec3 to = middle - from;
    float along = dot(to, sight);
    float square = radius * radius - dot(to, to) + along * along;
    if (square < 0.0) discard;
    if (flat2 > 0.5) {
      vec2 p = (at.xy - middle.xy) / radius;
      float away = length(p), line = fwidth(away);
      float rim = smoothstep(1.0 - 0.07 - line, 1.0 - 0.07, away);
      vec2 side = vec2(-pointer.y, pointer.x);
      float hand = step(0.0, dot(p, pointer)) * (1.0 - smoothstep(0.04, 0.04 + line, abs(dot(p, side))));
      vec3 shade = tint * (1.0 - 0.18 * away * away);
      colour = vec4(mix(shade, mark > 0.5 ? vec3(1.0, 0.35, 0.0) : shade * 0.35, max(rim, 0.75 * hand)), 1.0);
      gl_FragDepth = gl_FragCoord.z;
      return;
    }
    vec3 hit = from + (along - sqrt(square)) * sight;
    vec3 normal = (hit - middle) / radius;
    float light = 0.36 + 0.5 * max(dot(normal, normalize(vec3(-0.35, 0.7, 0.62))), 0.0)
      + 0.22 * max(dot(normal, -sight), 0.0);
    float gleam = pow(max(dot(reflect(sight, normal), normalize(vec3(-0.35, 0.7, 0.62))), 0.0), 24.0);
    colour = vec4(tint * light + 0.12 * gleam, 1.0);
    if (mark > 0.5) colour.rgb = mix(vec3(1.0, 0.35, 0.0), colour.rgb, smoothstep(0.35, 0.55, dot(normal, -sight)));
    vec4 clip = projectionMatrix * vec4(hit, 1.0);
    gl_FragDepth = 0.5 * clip.z / clip.w + 0.5;
  }
`;
const MESH_VERTEX = /* glsl */ `
  ${COMMON}
  in vec3 position, normal;
  in float body;
  out vec3 tint, facing, at;
  out float mark;
  ${BODY}
  void main() {
    vec4 place = placeOf(body);
    if (hidden(place)) { gl_Position = vec4(2.0, 2.0, 2.0, 1.0); return; }
    vec4 seen = modelViewMatrix * vec4(place.xyz + turned(body, position), 1.0);
    at = seen.xyz;
    facing = (modelViewMatrix * vec4(turned(body, normal), 0.0)).xyz;
    tint = colourOf(place.w);
    mark = abs(body - chosen) < 0.5 ? 1.0 : 0.0;
    gl_Position = projectionMatrix * seen;
  }
`;
const MESH_FRAGMENT = /* glsl */ `
  ${COMMON}
  uniform float flat2, edge;
  in vec3 tint, facing, at;
  in float mark;
  out vec4 colour;
  ${GHOST}
  void main() {
    fade();
    if (edge > 0.5) { colour = vec4(mark > 0.5 ? vec3(1.0, 0.35, 0.0) : tint * 0.35, 1.0); return; }
    vec3 sight = projectionMatrix[2][3] != 0.0 ? normalize(at) : vec3(0.0, 0.0, -1.0);
    vec3 normal = normalize(facing);
    if (dot(normal, sight) > 0.0) normal = -normal;
    float light = 0.46 + 0.45 * max(dot(normal, normalize(vec3(-0.35, 0.7, 0.62))), 0.0) + 0.22 * max(dot(normal, -sight), 0.0);
    colour = vec4(mix(tint * (flat2 > 0.5 ? 1.0 : light), vec3(1.0, 0.35, 0.0), 0.25 * mark), 1.0);
  }
`;
const TUBE_VERTEX = /* glsl */ `
  precision highp float;
  uniform mat4 modelViewMatrix, projectionMatrix;
  uniform float thickness;
  in vec3 position;
  in vec3 from, to;
  in float strength;
  out vec3 facing;
  out float share;
  void main() {
    vec3 axis = to - from;
    float far = max(length(axis), 1e-30);
    axis /= far;
    vec3 one = normalize(cross(axis, abs(axis.z) < 0.9 ? vec3(0.0, 0.0, 1.0) : vec3(1.0, 0.0, 0.0)));
    vec3 two = cross(axis, one);
    float wide = thickness * sqrt(strength);
    vec3 out_ = position.x * one + position.y * two;
    vec4 seen = modelViewMatrix * vec4(from + position.z * far * axis + wide * out_, 1.0);
    facing = (modelViewMatrix * vec4(out_, 0.0)).xyz;
    share = strength;
    gl_Position = projectionMatrix * seen;
  }
`;
const TUBE_FRAGMENT = /* glsl */ `
  precision highp float;
  uniform vec3 stops[4];
  in vec3 facing;
  in float share;
  out vec4 colour;
  void main() {
    float x = clamp(share, 0.0, 0.999) * 3.0;
    int k = int(x);
    vec3 tint = mix(stops[3 - k], stops[2 - k], x - float(k));
    colour = vec4(tint * (0.55 + 0.45 * max(normalize(facing).z, 0.0)), 1.0);
  }
`;

function texture(rows, data) {
  const out = new THREE.DataTexture(data, WIDTH, rows, THREE.RGBAFormat, THREE.FloatType);
  out.needsUpdate = true;
  return out;
}

function repeat(values, times) {
  const out = new Float32Array(values.length * times);
  for (let k = 0; k < values.length; k++) out.fill(values[k], k * times, (k + 1) * times);
  return out;
}

export class Stage {
  constructor(canvas) {
    THREE.ColorManagement.enabled = false; // colours are as they are named
    this.canvas = canvas;
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true, preserveDrawingBuffer: false });
    this.renderer.outputColorSpace = THREE.LinearSRGBColorSpace;
    this.scene = new THREE.Scene();
    this.shared = {
      places: { value: null }, turns: { value: null }, colours: { value: null }, range: { value: new THREE.Vector2(0, 1) },
      named: { value: 0 }, chosen: { value: -1 }, ghost: { value: 0 }, slice: { value: new THREE.Vector4(0, 0, 1, 0) },
      thick: { value: 0 }, flat2: { value: 0 },
    };
    this.colours = new THREE.DataTexture(new Uint8Array(1024), 256, 1, THREE.RGBAFormat);
    this.colours.magFilter = this.colours.minFilter = THREE.NearestFilter;
    this.shared.colours.value = this.colours;
    this.bodies = new THREE.Group();
    this.scene.add(this.bodies);
    this.planes = new THREE.Group();
    this.scene.add(this.planes);
    this.trails = new THREE.Group();
    this.scene.add(this.trails);
    this.cell = new THREE.LineSegments(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({ color: 0x7a8794 }));
    this.cell.frustumCulled = this.cell.visible = false;
    this.scene.add(this.cell);
    this.makeTubes();
    this.sent = 0; // bytes of the last frame
    this.needed = true;
  }

  material(vertex, fragment, more = {}) {
    return new THREE.RawShaderMaterial({
      glslVersion: THREE.GLSL3, vertexShader: vertex, fragmentShader: fragment, side: THREE.DoubleSide,
      uniforms: { ...this.shared, ...more },
    });
  }

  // What the bodies are made of.
  setShapes(shapes) {
    this.shapes = shapes;
    const flat = shapes.dimension === 2;
    this.shared.flat2.value = flat ? 1 : 0;
    for (const child of [...this.bodies.children]) {
      child.geometry.dispose();
      this.bodies.remove(child);
    }
    const rows = Math.max(1, Math.ceil(shapes.count / WIDTH));
    this.place = new Float32Array(4 * WIDTH * rows);
    this.turn = new Float32Array(4 * WIDTH * rows);
    for (const name of ["places", "turns"]) this.shared[name].value?.dispose();
    this.shared.places.value = texture(rows, this.place);
    this.shared.turns.value = texture(rows, this.turn);
    this.addBalls(shapes);
    if (shapes.triangle) this.addMeshes(shapes, flat);
    if (!this.camera) this.makeCamera(flat);
    this.triangles = (shapes.triangle ? shapes.triangle.length / 9 : 0) + 2 * this.balls;
  }

  addBalls(shapes) {
    const cornered = new Set(shapes.triangle_body || []);
    const kept = [];
    for (let k = 0; k < shapes.ball_body.length; k++) if (!cornered.has(shapes.ball_body[k])) kept.push(k);
    this.balls = kept.length;
    if (!kept.length) return;
    const ball = new Float32Array(4 * kept.length);
    const body = new Float32Array(kept.length);
    kept.forEach((k, row) => {
      ball.set(shapes.ball_centre.subarray(3 * k, 3 * k + 3), 4 * row);
      ball[4 * row + 3] = shapes.ball_radius[k];
      body[row] = shapes.ball_body[k];
    });
    const geometry = new THREE.InstancedBufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array([-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0]), 3));
    geometry.setIndex([0, 1, 2, 0, 2, 3]);
    geometry.setAttribute("ball", new THREE.InstancedBufferAttribute(ball, 4));
    geometry.setAttribute("body", new THREE.InstancedBufferAttribute(body, 1));
    geometry.instanceCount = kept.length;
    const mesh = new THREE.Mesh(geometry, this.material(BALL_VERTEX, BALL_FRAGMENT));
    mesh.frustumCulled = false;
    this.bodies.add(mesh);
  }

  addMeshes(shapes, flat) {
    const corners = shapes.triangle;
    const normals = new Float32Array(corners.length);
    for (let k = 0; k < corners.length; k += 9) {
      const [ax, ay, az, bx, by, bz, cx, cy, cz] = corners.subarray(k, k + 9);
      const u = [bx - ax, by - ay, bz - az];
      const v = [cx - ax, cy - ay, cz - az];
      const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
      const size = Math.hypot(...n) || 1;
      for (let i = 0; i < 9; i++) normals[k + i] = n[i % 3] / size;
    }
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(corners, 3));
    geometry.setAttribute("normal", new THREE.BufferAttribute(normals, 3));
    geometry.setAttribute("body", new THREE.BufferAttribute(repeat(shapes.triangle_body, 3), 1));
    const faces = this.material(MESH_VERTEX, MESH_FRAGMENT, { edge: { value: 0 } });
    faces.polygonOffset = true;
    faces.polygonOffsetFactor = faces.polygonOffsetUnits = 1;
    const mesh = new THREE.Mesh(geometry, faces);
    const outline = new THREE.BufferGeometry();
    outline.setAttribute("position", new THREE.BufferAttribute(shapes.edge, 3));
    outline.setAttribute("normal", new THREE.BufferAttribute(new Float32Array(shapes.edge.length), 3));
    outline.setAttribute("body", new THREE.BufferAttribute(repeat(shapes.edge_body, 2), 1));
    const lines = new THREE.LineSegments(outline, this.material(MESH_VERTEX, MESH_FRAGMENT, { edge: { value: 1 } }));
    if (flat) lines.renderOrder = 1;
    for (const object of [mesh, lines]) {
      object.frustumCulled = false;
      this.bodies.add(object);
    }
  }

  makeTubes() {
    const sides = 8;
    const ring = [];
    const index = [];
    for (let k = 0; k < sides; k++) {
      const angle = (2 * Math.PI * k) / sides;
      for (const z of [0, 1]) ring.push(Math.cos(angle), Math.sin(angle), z);
      const a = 2 * k;
      const b = 2 * ((k + 1) % sides);
      index.push(a, b, a + 1, b, b + 1, a + 1);
    }
    const geometry = (this.tubeGeometry = new THREE.InstancedBufferGeometry());
    geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(ring), 3));
    geometry.setIndex(index);
    geometry.instanceCount = 0;
    const stops = FORCE.map((hex) => new THREE.Vector3(...rgb(hex).map((c) => c / 255)));
    this.tubes = new THREE.Mesh(
      geometry,
      new THREE.RawShaderMaterial({
        glslVersion: THREE.GLSL3, vertexShader: TUBE_VERTEX, fragmentShader: TUBE_FRAGMENT, side: THREE.DoubleSide,
        uniforms: { thickness: { value: 0 }, stops: { value: stops } },
      }),
    );
    this.tubes.frustumCulled = false;
    this.tubes.renderOrder = 2;
    this.tubes.visible = false;
    this.scene.add(this.tubes);
  }

  makeCamera(flat) {
    this.flat = flat;
    this.camera = flat ? new THREE.OrthographicCamera(-1, 1, 1, -1, -1e6, 1e6) : new THREE.PerspectiveCamera(35, 1, 1e-3, 1e3);
    this.camera.up.set(0, flat ? 1 : 0, flat ? 0 : 1);
    this.controls = new OrbitControls(this.camera, this.canvas);
    this.controls.enableRotate = !flat;
    this.controls.screenSpacePanning = true;
    this.controls.zoomToCursor = true;
    if (flat) this.controls.mouseButtons.LEFT = THREE.MOUSE.PAN;
    if (flat) this.controls.touches.ONE = THREE.TOUCH.PAN;
    this.controls.addEventListener("change", () => (this.needed = true));
  }

  // The box of the free bodies of a frame; of all, where none is free.
  boundsOf(frame) {
    const box = new THREE.Box3();
    for (const kinds of [[0], [0, 1, 2]]) {
      for (let k = 0; k < frame.bodies; k++) {
        const slot = frame.slot[k];
        if (this.shapes.plane[slot] || !kinds.includes(this.shapes.kind[slot])) continue;
        const r = this.shapes.radius[slot];
        const p = frame.position.subarray(3 * k, 3 * k + 3);
        box.expandByPoint(new THREE.Vector3(p[0] - r, p[1] - r, this.flat ? 0 : p[2] - r));
        box.expandByPoint(new THREE.Vector3(p[0] + r, p[1] + r, this.flat ? 0 : p[2] + r));
      }
      if (!box.isEmpty()) break;
    }
    for (const p of this.edgesOf(frame.cell)) box.expandByPoint(p);
    if (box.isEmpty()) box.set(new THREE.Vector3(-1, -1, -1), new THREE.Vector3(1, 1, 1));
    return box;
  }

  // Both ends of each edge of the periodic cell; nothing in open space.
  edgesOf(cell) {
    if (!cell) return [];
    const rows = cell.rows.map((row) => new THREE.Vector3(...row)).slice(0, this.flat ? 2 : 3);
    const out = [];
    rows.forEach((row, k) => {
      const others = rows.filter((_, other) => other !== k);
      for (let pick = 0; pick < 2 ** others.length; pick++) {
        const start = new THREE.Vector3();
        others.forEach((other, n) => { if (pick & (1 << n)) start.add(other); });
        out.push(start, start.clone().add(row));
      }
    });
    return out;
  }

  // Look along a direction at all there is.
  view(bounds, direction) {
    this.bounds = bounds;
    const middle = bounds.getCenter(new THREE.Vector3());
    const size = bounds.getSize(new THREE.Vector3());
    const reach = 0.5 * size.length() || 1;
    this.reach = reach;
    this.controls.target.copy(middle);
    if (this.flat) {
      this.camera.position.set(middle.x, middle.y, 10);
      this.extent = Math.max(size.y, size.x / Math.max(this.aspect || 1, 1e-3)) * 0.56 || 1;
      this.camera.zoom = 1;
    } else {
      const toward = new THREE.Vector3(...direction).normalize();
      if (Math.abs(toward.z) > 0.999) toward.y -= 1e-4; // the controls cannot look straight along their own axis
      const narrow = Math.min(1, this.aspect || 1);
      this.camera.position.copy(middle).addScaledVector(toward, (1.02 * reach) / Math.sin((Math.PI / 180) * 17.5) / narrow);
      this.camera.zoom = 1;
    }
    this.resize(true);
    this.controls.update();
    this.needed = true;
  }

  // Turn by shares of a full turn (3D), or move by shares of the picture (2D): for the keys.
  orbit(right, up) {
    if (this.flat) return this.move(right, up);
    const away = this.camera.position.clone().sub(this.controls.target);
    const far = away.length();
    const azimuth = Math.atan2(away.y, away.x) + 2 * Math.PI * right;
    const most = 0.4999 * Math.PI;
    const height = Math.max(-most, Math.min(most, Math.asin(away.z / far) + 2 * Math.PI * up));
    away.set(Math.cos(height) * Math.cos(azimuth), Math.cos(height) * Math.sin(azimuth), Math.sin(height));
    this.camera.position.copy(this.controls.target).addScaledVector(away, far);
    this.controls.update();
    this.needed = true;
  }

  // Move by shares of the height of the picture.
  move(right, up) {
    const far = this.camera.position.distanceTo(this.controls.target);
    const tall = this.flat ? (2 * this.extent) / this.camera.zoom : 2 * far * Math.tan((Math.PI / 180) * 17.5);
    this.camera.updateMatrixWorld();
    const e = this.camera.matrixWorld.elements;
    const by = new THREE.Vector3(e[0], e[1], e[2]).multiplyScalar(right * tall);
    by.addScaledVector(new THREE.Vector3(e[4], e[5], e[6]), up * tall);
    this.camera.position.add(by);
    this.controls.target.add(by);
    this.controls.update();
    this.needed = true;
  }

  zoomBy(factor) {
    if (this.flat) {
      this.camera.zoom *= factor;
      this.camera.updateProjectionMatrix();
    } else {
      const away = this.camera.position.clone().sub(this.controls.target);
      this.camera.position.copy(this.controls.target).addScaledVector(away, 1 / factor);
    }
    this.controls.update();
    this.needed = true;
  }

  resize(force = false) {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    if (!w || !h) return;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const size = this.renderer.getSize(new THREE.Vector2());
    if (force || size.x !== w || size.y !== h || this.renderer.getPixelRatio() !== ratio) {
      this.renderer.setPixelRatio(ratio);
      this.renderer.setSize(w, h, false);
      this.aspect = w / h;
      this.shape();
    }
  }

  shape() {
    if (!this.camera) return;
    if (this.flat) {
      const e = this.extent || 1;
      Object.assign(this.camera, { left: -e * this.aspect, right: e * this.aspect, top: e, bottom: -e });
    } else this.camera.aspect = this.aspect;
    this.camera.updateProjectionMatrix();
    this.needed = true;
  }

  // Places and colours of a frame.
  setFrame(frame, values) {
    this.frame = frame;
    this.place.fill(ABSENT);
    for (let k = 0; k < frame.bodies; k++) {
      const at = 4 * frame.slot[k];
      this.place[at] = frame.position[3 * k];
      this.place[at + 1] = frame.position[3 * k + 1];
      this.place[at + 2] = frame.position[3 * k + 2];
      this.place[at + 3] = values[k];
      for (let i = 0; i < 4; i++) this.turn[at + i] = frame.turn[4 * k + i];
    }
    this.shared.places.value.needsUpdate = true;
    this.shared.turns.value.needsUpdate = true;
    this.sent = this.place.byteLength + this.turn.byteLength;
    this.setPlanes(frame);
    this.cell.visible = !!frame.cell;
    if (frame.cell) {
      this.cell.geometry.dispose();
      this.cell.geometry = new THREE.BufferGeometry().setFromPoints(this.edgesOf(frame.cell));
    }
    this.needed = true;
  }

  setColours(mode, range) {
    this.colours.image.data.set(palette(mode));
    this.colours.needsUpdate = true;
    this.shared.named.value = mode.colours ? 1 : 0;
    this.shared.range.value.set(...range);
    this.needed = true;
  }

  setPlanes(frame) {
    for (const child of [...this.planes.children]) {
      child.geometry.dispose();
      child.material.dispose();
      this.planes.remove(child);
    }
    if (!this.bounds) return;
    const middle = this.bounds.getCenter(new THREE.Vector3());
    const size = this.bounds.getSize(new THREE.Vector3());
    const reach = this.flat ? 1.15 * this.reach : 0.56 * Math.max(size.x, size.y, size.z);
    for (let row = 0; row < frame.bodies; row++) {
      if (!this.shapes.plane[frame.slot[row]]) continue;
      const n = new THREE.Vector3(...this.shapes.normalOf(frame, row));
      const p = new THREE.Vector3(...frame.position.subarray(3 * row, 3 * row + 3));
      const foot = middle.clone().addScaledVector(n, -middle.clone().sub(p).dot(n));
      this.planes.add(this.flat ? this.ground(foot, n, reach) : this.sheet(foot, n, reach));
    }
  }

  // A half-plane as a band below its edge.
  ground(foot, n, reach) {
    const t = new THREE.Vector3(-n.y, n.x, 0).multiplyScalar(3 * reach);
    const below = n.clone().multiplyScalar(-0.06 * reach);
    const a = foot.clone().sub(t);
    const b = foot.clone().add(t);
    const points = [a, b, b.clone().add(below), a, b.clone().add(below), a.clone().add(below)];
    const geometry = new THREE.BufferGeometry().setFromPoints(points);
    const mesh = new THREE.Mesh(geometry, new THREE.MeshBasicMaterial({ color: 0x9a9a9a, side: THREE.DoubleSide }));
    mesh.renderOrder = -1;
    mesh.material.depthTest = false;
    return mesh;
  }

  // A plane as a sheet that one can see through from behind.
  sheet(foot, n, reach) {
    const least = Math.abs(n.x) < 0.6 ? new THREE.Vector3(1, 0, 0) : new THREE.Vector3(0, 1, 0);
    const one = new THREE.Vector3().crossVectors(n, least).normalize().multiplyScalar(reach);
    const two = new THREE.Vector3().crossVectors(n, one);
    const at = (i, j) => foot.clone().addScaledVector(one, i).addScaledVector(two, j);
    const points = [at(-1, -1), at(1, -1), at(1, 1), at(-1, -1), at(1, 1), at(-1, 1)];
    const floor = n.z > 0.5;
    const material = new THREE.MeshBasicMaterial({
      color: 0x9aa3ad, transparent: true, opacity: floor ? 0.45 : 0.1, side: floor ? THREE.DoubleSide : THREE.FrontSide,
      depthWrite: false,
    });
    const mesh = new THREE.Mesh(new THREE.BufferGeometry().setFromPoints(points), material);
    mesh.renderOrder = 3;
    return mesh;
  }

  // Forces above ``threshold`` times ``full`` as tubes, from the centres of bodies that move to the contact point.
  setForces(frame, shown, threshold, full, scale) {
    this.tubes.visible = shown;
    this.needed = true;
    if (!shown) return 0;
    const c = frame.contacts;
    const from = [];
    const strength = [];
    let count = 0;
    const middle = (row) => frame.position.subarray(3 * row, 3 * row + 3);
    const { xyz, thick } = this.slicing();
    for (let k = 0; k < c.count; k++) {
      const share = c.force[k] / full;
      if (!(share > 0) || share < threshold) continue;
      const point = c.point.subarray(3 * k, 3 * k + 3);
      if (thick > 0 && Math.abs(point[0] * xyz[0] + point[1] * xyz[1] + point[2] * xyz[2] - xyz[3]) > thick) continue;
      count++;
      const movers = [c.rowA[k], c.rowB[k]].filter((row) => this.shapes.kind[frame.slot[row]] !== 1 && !this.shapes.plane[frame.slot[row]]);
      for (const row of movers) {
        const centre = middle(row);
        let end = point;
        if (frame.cell) { // the image beside this body
          const arm = frame.cell.shortest([0, 1, 2].map((i) => point[i] - centre[i]));
          end = arm.map((x, i) => centre[i] + x);
        }
        from.push(centre[0], centre[1], centre[2], end[0], end[1], end[2]);
        strength.push(Math.min(1, share));
      }
    }
    const ends = new Float32Array(from);
    const buffer = new THREE.InstancedInterleavedBuffer(ends, 6, 1);
    this.tubeGeometry.setAttribute("from", new THREE.InterleavedBufferAttribute(buffer, 3, 0));
    this.tubeGeometry.setAttribute("to", new THREE.InterleavedBufferAttribute(buffer, 3, 3));
    this.tubeGeometry.setAttribute("strength", new THREE.InstancedBufferAttribute(new Float32Array(strength), 1));
    this.tubeGeometry.instanceCount = strength.length;
    this.tubes.material.uniforms.thickness.value = 0.35 * this.typical() * scale;
    this.tubes.material.depthTest = !this.flat;
    this.sent += ends.byteLength + 4 * strength.length;
    return count;
  }

  // Median radius of the free bodies; blocks are about half as thick as the ball around them.
  typical() {
    if (this.typicalOf !== this.shapes) {
      const sizes = [];
      const cornered = new Set(this.shapes.triangle_body || []);
      for (let k = 0; k < this.shapes.count; k++)
        if (this.shapes.kind[k] === 0 && this.shapes.radius[k] > 0)
          sizes.push(this.shapes.radius[k] * (cornered.has(k) ? 0.5 : 1));
      sizes.sort((a, b) => a - b);
      this.typicalRadius = sizes.length ? sizes[sizes.length >> 1] : 1;
      this.typicalOf = this.shapes;
    }
    return this.typicalRadius;
  }

  slicing() {
    return { xyz: this.shared.slice.value.toArray(), thick: this.shared.thick.value };
  }

  setSlice(axis, place, thick) {
    const n = { x: [1, 0, 0], y: [0, 1, 0], z: [0, 0, 1] }[axis];
    this.shared.thick.value = n ? thick : 0;
    if (n) this.shared.slice.value.set(...n, place);
    this.needed = true;
  }

  setTrails(lines) {
    for (const child of [...this.trails.children]) {
      child.geometry.dispose();
      this.trails.remove(child);
    }
    for (const points of lines) {
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(points), 3));
      const line = new THREE.Line(geometry, new THREE.LineBasicMaterial({ color: 0xff5a00, depthTest: !this.flat }));
      line.renderOrder = 4;
      line.frustumCulled = false;
      this.trails.add(line);
    }
    this.needed = true;
  }

  // The ray under a place of the canvas, in pixels.
  ray(x, y) {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const caster = new THREE.Raycaster();
    this.camera.updateMatrixWorld();
    caster.setFromCamera(new THREE.Vector2((2 * x) / w - 1, 1 - (2 * y) / h), this.camera);
    return caster.ray;
  }

  toScreen(p) {
    this.camera.updateMatrixWorld();
    const v = new THREE.Vector3(...p).project(this.camera);
    return [((v.x + 1) / 2) * this.canvas.clientWidth, ((1 - v.y) / 2) * this.canvas.clientHeight, v.z];
  }

  isShown(p) {
    const { xyz, thick } = this.slicing();
    return !(thick > 0 && Math.abs(p[0] * xyz[0] + p[1] * xyz[1] + p[2] * xyz[2] - xyz[3]) > thick);
  }

  // The row of the nearest body under a place of the canvas, or -1.
  pickBody(x, y) {
    const { shapes, frame } = this;
    const ray = this.ray(x, y);
    const rowOf = new Int32Array(shapes.count).fill(-1);
    for (let k = 0; k < frame.bodies; k++) if (this.isShown(frame.position.subarray(3 * k, 3 * k + 3))) rowOf[frame.slot[k]] = k;
    const placed = (row, v) => {
      const out = rotated(frame.turn.subarray(4 * row, 4 * row + 4), v);
      for (let i = 0; i < 3; i++) out[i] += frame.position[3 * row + i];
      return new THREE.Vector3(...out);
    };
    let nearest = Infinity;
    let found = -1;
    const cornered = new Set(shapes.triangle_body || []);
    const hit = new THREE.Vector3();
    const sphere = new THREE.Sphere();
    for (let k = 0; k < shapes.ball_body.length; k++) {
      const row = rowOf[shapes.ball_body[k]];
      if (row < 0 || cornered.has(shapes.ball_body[k])) continue;
      sphere.center.copy(placed(row, shapes.ball_centre.subarray(3 * k, 3 * k + 3)));
      sphere.radius = shapes.ball_radius[k];
      if (ray.intersectSphere(sphere, hit) && hit.distanceTo(ray.origin) < nearest) {
        nearest = hit.distanceTo(ray.origin);
        found = row;
      }
    }
    for (let k = 0; k < (shapes.triangle_body || []).length; k++) {
      const row = rowOf[shapes.triangle_body[k]];
      if (row < 0) continue;
      sphere.center.set(...frame.position.subarray(3 * row, 3 * row + 3));
      sphere.radius = shapes.radius[frame.slot[row]];
      if (!ray.intersectsSphere(sphere)) continue;
      const [a, b, c] = [0, 3, 6].map((i) => placed(row, shapes.triangle.subarray(9 * k + i, 9 * k + i + 3)));
      if (ray.intersectTriangle(a, b, c, false, hit) && hit.distanceTo(ray.origin) < nearest) {
        nearest = hit.distanceTo(ray.origin);
        found = row;
      }
    }
    return found;
  }

  // The contact whose point is nearest to a place of the canvas, within ``within`` pixels, or -1.
  pickContact(x, y, within, threshold) {
    const c = this.frame.contacts;
    let nearest = within;
    let found = -1;
    for (let k = 0; k < c.count; k++) {
      if (c.force[k] < threshold) continue;
      const point = c.point.subarray(3 * k, 3 * k + 3);
      if (!this.isShown(point)) continue;
      const [px, py] = this.toScreen(point);
      const away = Math.hypot(px - x, py - y);
      if (away < nearest) {
        nearest = away;
        found = k;
      }
    }
    return found;
  }

  render(background) {
    this.scene.background = new THREE.Color(background);
    if (!this.flat && this.reach) {
      const far = this.camera.position.distanceTo(this.controls.target);
      this.camera.near = Math.max(far / 500, far - 6 * this.reach);
      this.camera.far = far + 8 * this.reach;
      this.camera.updateProjectionMatrix();
    }
    this.renderer.render(this.scene, this.camera);
    this.needed = false;
  }

  // A picture ``width`` pixels wide, as a canvas.
  picture(width, background) {
    const most = this.renderer.capabilities.maxTextureSize;
    const wide = Math.min(width, most, Math.floor(most * this.aspect));
    const ratio = this.renderer.getPixelRatio();
    const size = this.renderer.getSize(new THREE.Vector2());
    this.renderer.setPixelRatio(1);
    this.renderer.setSize(wide, Math.round(wide / this.aspect), false);
    this.render(background);
    const out = document.createElement("canvas");
    out.width = this.canvas.width;
    out.height = this.canvas.height;
    out.getContext("2d").drawImage(this.canvas, 0, 0);
    this.renderer.setPixelRatio(ratio);
    this.renderer.setSize(size.x, size.y, false);
    this.needed = true;
    return out;
  }
}
