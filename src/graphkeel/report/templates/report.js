"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const SPLITS = ["", "train", "validation", "test"];

/* ---- node by node ---- */

function effect(label, before, after) {
  if (before === after) return "";
  if (label < 0) return "changed";
  return after === label ? "gained" : before === label ? "lost" : "changed";
}

function called(label) { return label < 0 ? "?" : (DATA.names[label] ?? label); }

// Pages about large graphs hold some of the nodes; their numbers then come along.
function numberOf(nodes, i) { return nodes.id ? nodes.id[i] : i; }

// "class 3", "to 2", "from 1" and "degree 5" are pairs; every other word stands alone.
function conditions(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (let i = 0; i < words.length; i += 1) {
    const pair = ["class", "to", "from", "degree", "node"].includes(words[i]) && /^\d+$/.test(words[i + 1] || "");
    if (pair) { found.push([words[i], Number(words[i + 1])]); i += 1; } else found.push([words[i], null]);
  }
  return found;
}

function matches(nodes, i, wanted) {
  const kind = effect(nodes.y[i], nodes.before[i], nodes.after[i]);
  return wanted.every(([word, number]) => {
    if (word === "class") return nodes.y[i] === number;
    if (word === "to") return nodes.after[i] === number;
    if (word === "from") return nodes.before[i] === number;
    if (word === "degree") return nodes.degree[i] === number;
    if (word === "node") return numberOf(nodes, i) === number;
    if (word === "changed") return kind !== "";
    if (word === "gained" || word === "lost") return kind === word;
    if (/^\d+$/.test(word)) return String(numberOf(nodes, i)).startsWith(word);
    return SPLITS[nodes.split[i]].startsWith(word) && SPLITS[nodes.split[i]] !== "";
  });
}

function showNodes() {
  const nodes = DATA.nodes[byId("node-seed").value];
  const body = byId("node-table").querySelector("tbody");
  const wanted = conditions(byId("node-search").value);
  const limit = 200;
  let count = 0;
  body.textContent = "";
  for (let i = 0; i < nodes.y.length; i += 1) {
    if (!matches(nodes, i, wanted)) continue;
    count += 1;
    if (count > limit) continue;
    const kind = effect(nodes.y[i], nodes.before[i], nodes.after[i]);
    const row = body.insertRow();
    const classes = [nodes.y[i], nodes.before[i], nodes.after[i]].map(called);
    const cells = [numberOf(nodes, i), SPLITS[nodes.split[i]], nodes.degree[i], ...classes, kind];
    for (const value of cells) row.insertCell().textContent = value;
    row.cells[1].className = row.cells[2].className = "wide";
    row.lastChild.className = kind === "gained" ? "up" : kind === "lost" ? "down" : "same";
  }
  const told = `${count} node${count === 1 ? "" : "s"}`;
  byId("node-count").textContent = count > limit ? `${told}, the first ${limit} shown` : told;
}

if (byId("node-table")) {
  byId("node-search").addEventListener("input", showNodes);
  byId("node-seed").addEventListener("change", showNodes);
  showNodes();
}

/* ---- the Lyapunov surface ---- */

function network(layers, x) {
  for (let k = 0; k < layers.length; k += 1) {
    const { weight, bias } = layers[k];
    const out = new Float64Array(bias.length);
    for (let i = 0; i < bias.length; i += 1) {
      let sum = bias[i];
      for (let j = 0; j < x.length; j += 1) sum += weight[i][j] * x[j];
      out[i] = k + 1 < layers.length ? Math.max(sum, 0) : sum;
    }
    x = out;
  }
  return x;
}

const VIRIDIS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
function colour(t) {
  const at = Math.min(Math.max(t, 0), 1) * (VIRIDIS.length - 1);
  const k = Math.min(Math.floor(at), VIRIDIS.length - 2);
  const mix = VIRIDIS[k].map((c, i) => Math.round(c + (at - k) * (VIRIDIS[k + 1][i] - c)));
  return `rgb(${mix[0]},${mix[1]},${mix[2]})`;
}

const CELLS = 36;
const STEPS = 40;
const view = { turn: -0.7, tilt: 0.62, starts: [] };

function style(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

function loop() { return DATA.loops[Number(byId("loop-class").value)]; }

// V on the slice through Y along two logits: a grid of heights over the box.
function slice() {
  const one = loop();
  const i = Number(byId("axis-x").value), j = Number(byId("axis-y").value);
  const heights = [];
  let low = Infinity, high = -Infinity;
  for (let b = 0; b <= CELLS; b += 1) {
    const row = [];
    for (let a = 0; a <= CELLS; a += 1) {
      const state = one.equilibrium.slice();
      state[i] = one.lower[i] + (one.upper[i] - one.lower[i]) * a / CELLS;
      state[j] = one.lower[j] + (one.upper[j] - one.lower[j]) * b / CELLS;
      const value = network(one.V, state)[0];
      low = Math.min(low, value); high = Math.max(high, value);
      row.push(value);
    }
    heights.push(row);
  }
  return { one, i, j, heights, low, high: high > low ? high : low + 1 };
}

function trajectory(one, start) {
  const states = [start];
  for (let k = 0; k < STEPS; k += 1) states.push(Array.from(network(one.F, states[k])));
  return states;
}

function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth || 320, height = Math.round(width * 0.8);
  canvas.style.height = `${height}px`;
  canvas.width = width * ratio; canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

function drawSurface(cut) {
  const { pen, width, height } = prepare(byId("surface"));
  const scale = Math.min(width, height) * 0.36;
  const sin = Math.sin(view.turn), cos = Math.cos(view.turn), up = Math.sin(view.tilt), flat = Math.cos(view.tilt);
  const place = (u, v, h) => {
    const x = u * cos - v * sin, depth = u * sin + v * cos;
    return [width / 2 + scale * x * 1.15, height * 0.56 + scale * (depth * up - (h * 1.3 - 0.5) * flat), depth];
  };
  const unit = (value) => (value - cut.low) / (cut.high - cut.low);
  const corner = (a, b) => place(2 * a / CELLS - 1, 2 * b / CELLS - 1, unit(cut.heights[b][a]));
  const faces = [];
  for (let b = 0; b < CELLS; b += 1) for (let a = 0; a < CELLS; a += 1) {
    const points = [corner(a, b), corner(a + 1, b), corner(a + 1, b + 1), corner(a, b + 1)];
    faces.push({ points, depth: points[0][2] + points[2][2], height: unit(cut.heights[b][a]) });
  }
  faces.sort((p, q) => p.depth - q.depth);
  for (const face of faces) {
    pen.beginPath();
    face.points.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.closePath();
    pen.fillStyle = pen.strokeStyle = colour(face.height);
    pen.fill(); pen.stroke();
  }
  pen.lineWidth = 2;
  pen.strokeStyle = "#ff5d73";
  for (const start of view.starts) {
    pen.beginPath();
    trajectory(cut.one, start).forEach((state, k) => {
      const [u, v] = onSquare(cut, state);
      const [x, y] = place(u, v, Math.min(unit(network(cut.one.V, state)[0]), 1.4));
      if (k) pen.lineTo(x, y); else pen.moveTo(x, y);
    });
    pen.stroke();
  }
  const [u, v] = onSquare(cut, cut.one.equilibrium);
  const [x, y] = place(u, v, unit(network(cut.one.V, cut.one.equilibrium)[0]));
  dot(pen, x, y, 5, "#ff5d73");
}

function onSquare(cut, state) {
  const { one, i, j } = cut;
  return [i, j].map((k) => 2 * (state[k] - one.lower[k]) / (one.upper[k] - one.lower[k]) - 1);
}

function dot(pen, x, y, radius, fill) {
  pen.beginPath(); pen.arc(x, y, radius, 0, 2 * Math.PI); pen.fillStyle = fill; pen.fill();
  pen.strokeStyle = "#fff"; pen.lineWidth = 1.5; pen.stroke();
}

const MARGIN = 34;
function drawPlane(cut) {
  const { pen, width, height } = prepare(byId("plane"));
  const w = width - MARGIN - 10, h = height - MARGIN - 10;
  for (let b = 0; b < CELLS; b += 1) for (let a = 0; a < CELLS; a += 1) {
    pen.fillStyle = colour((cut.heights[b][a] - cut.low) / (cut.high - cut.low));
    pen.fillRect(MARGIN + w * a / CELLS, 10 + h * (CELLS - 1 - b) / CELLS, w / CELLS + 1, h / CELLS + 1);
  }
  const at = (state) => { const [u, v] = onSquare(cut, state); return [MARGIN + w * (u + 1) / 2, 10 + h * (1 - v) / 2]; };
  pen.fillStyle = style("--soft"); pen.font = "12px system-ui, sans-serif";
  const { one, i, j } = cut;
  pen.fillText(one.lower[i].toFixed(1), MARGIN, height - 8);
  pen.textAlign = "center"; pen.fillText(`logit of class ${i}`, MARGIN + w / 2, height - 8);
  pen.textAlign = "right"; pen.fillText(one.upper[i].toFixed(1), MARGIN + w, height - 8);
  pen.save(); pen.translate(14, 10 + h / 2); pen.rotate(-Math.PI / 2); pen.textAlign = "center";
  pen.fillText(`logit of class ${j}`, 0, 0); pen.restore();
  for (const start of view.starts) {
    const path = trajectory(one, start).map(at);
    pen.beginPath(); path.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.strokeStyle = "#fff"; pen.lineWidth = 2; pen.stroke();
    path.slice(0, 6).forEach(([x, y], k) => dot(pen, x, y, k ? 2.5 : 5, "#1f2933"));
  }
  const [x, y] = at(one.equilibrium);
  dot(pen, x, y, 6, "#ff5d73");
}

function tell(cut) {
  if (!view.starts.length) return;
  const states = trajectory(cut.one, view.starts[view.starts.length - 1]);
  const values = states.map((state) => network(cut.one.V, state)[0]);
  const rises = values.slice(1).filter((value, k) => value >= values[k] && values[k] > 1e-5).length;
  const far = Math.max(...states[STEPS].map((value, k) => Math.abs(value - cut.one.equilibrium[k])));
  byId("loop-told").textContent = `V: ${values.slice(0, 6).map((v) => v.toPrecision(3)).join(" → ")} → …; `
    + `after ${STEPS} steps ${far.toExponential(1)} from Y; `
    + (rises ? `V did not fall on ${rises} steps.` : "V fell on every step that can be told from rounding.");
}

function draw() { const cut = slice(); drawSurface(cut); drawPlane(cut); tell(cut); }

function fill(select, labels, chosen) {
  select.textContent = "";
  labels.forEach((label, k) => select.add(new Option(label, k, k === chosen, k === chosen)));
}

function setUpLoops() {
  const n = DATA.loops[0].lower.length;
  const names = Array.from({ length: n }, (_, k) => `logit ${k}`);
  fill(byId("loop-class"), DATA.loops.map((one) => `${one.label} (${one.verdict})`), 0);
  const first = DATA.loops[0].equilibrium.indexOf(Math.max(...DATA.loops[0].equilibrium));
  fill(byId("axis-x"), names, first);
  fill(byId("axis-y"), names, (first + 1) % n);
  for (const id of ["axis-x", "axis-y"]) byId(id).addEventListener("change", draw);
  byId("loop-class").addEventListener("change", () => { view.starts = []; draw(); });
  byId("loop-clear").addEventListener("click", () => { view.starts = []; draw(); });
  byId("loop-random").addEventListener("click", () => {
    const one = loop();
    view.starts.push(one.lower.map((low, k) => low + Math.random() * (one.upper[k] - low)));
    draw();
  });
  byId("plane").addEventListener("click", (event) => {
    const box = byId("plane").getBoundingClientRect(), cut = slice();
    const u = (event.clientX - box.left - MARGIN) / (box.width - MARGIN - 10), v = 1 - (event.clientY - box.top - 10) / (box.height - MARGIN - 10);
    if (u < 0 || u > 1 || v < 0 || v > 1) return;
    const state = cut.one.equilibrium.slice();
    state[cut.i] = cut.one.lower[cut.i] + u * (cut.one.upper[cut.i] - cut.one.lower[cut.i]);
    state[cut.j] = cut.one.lower[cut.j] + v * (cut.one.upper[cut.j] - cut.one.lower[cut.j]);
    view.starts.push(state);
    draw();
  });
  const surface = byId("surface");
  surface.addEventListener("pointerdown", (event) => surface.setPointerCapture(event.pointerId));
  surface.addEventListener("pointermove", (event) => {
    if (!surface.hasPointerCapture(event.pointerId)) return;
    turn(event.movementX * 0.01, event.movementY * 0.01);
  });
  surface.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
    if (moves[event.key]) { turn(...moves[event.key]); event.preventDefault(); }
  });
  window.addEventListener("resize", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}

function turn(around, over) {
  view.turn -= around;
  view.tilt = Math.min(Math.max(view.tilt + over, 0.05), 1.5);
  draw();
}

if (DATA.loops.length) setUpLoops();
