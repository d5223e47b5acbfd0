"use strict";
// Every value from data goes through textContent; nothing is ever parsed as markup.

const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
let state = null;      // what the server told last
let sending = false;   // one answer at a time
let picked = 0;        // the match that Enter takes
let poll = 0;          // the timer that asks again while labels are taken in

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const colour = (label) => `c${label % 10}`;
const nameOf = (label) => state.classes[label];
const shortName = (label) => nameOf(label).replace(/^class /, "").slice(0, 3);
const percent = (share) => (share < 0.01 ? "< 1 %" : share > 0.99 ? "> 99 %" : `${Math.round(100 * share)} %`);
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

// ---- talking to the server

async function ask(path, body) {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("keel label is not running any more. What was answered before is saved: start it again to go on.");
  }
  const found = await answer.json();
  if (answer.ok) return found;
  const error = new Error(found.error);
  error.stale = answer.status === 409;
  throw error;
}

async function refresh() {
  try {
    const found = await ask("state");
    if (!sending) show(found);  // what is under way brings a newer one
  } catch (error) {
    say(error.message);
  }
}

async function send(path, body) {
  if (sending || !state) return;
  sending = true;
  try {
    const found = await ask(path, { version: state.version, ...body });
    say("");
    show(found);
  } catch (error) {
    sending = false;
    if (error.stale) await refresh();
    say(error.stale ? "This node was answered in another tab. Here is the one that is asked about now." : error.message);
  } finally {
    sending = false;
  }
}

const answer = (label) => state && state.task && send("answer", { node: state.task.node, label });
const undo = () => state && state.last && send("undo", {});

function say(words) {
  byId("status").hidden = !words;
  byId("status").textContent = words;
}

// ---- the page

function show(found) {
  if (state && found.version < state.version) return;  // asked for before the last answer, told after it
  const moved = !state || state.version !== found.version;
  state = found;
  showProgress();
  showStanding();
  byId("main").hidden = false;
  for (const id of ["question", "around"]) byId(id).hidden = !found.task;
  byId("over").hidden = Boolean(found.task);
  document.body.dataset.version = found.version;
  if (found.task && moved) showTask(found.task);
  if (found.trouble) say(found.trouble);
  clearTimeout(poll);
  if (found.busy) poll = setTimeout(refresh, 1000);
}

function showProgress() {
  const skipped = state.skipped ? `, ${state.skipped} skipped` : "";
  byId("progress").textContent = `${plural(state.labels, "label")}${skipped}${state.busy ? " · taking them in …" : ""}`;
  const last = state.last;
  byId("undo").hidden = !last;
  if (last) byId("undo").textContent = `Undo ${last.node}: ${last.label === null ? "skipped" : nameOf(last.label)}`;
}

function showTask(task) {
  const random = task.why === "random";
  byId("node").textContent = `Node ${task.node}`;
  byId("why").textContent = random ? "drawn at random" : "suggested";
  byId("why").className = `badge ${random ? "random" : ""}`;
  byId("reason").textContent = random
    ? "It keeps the estimate below honest: what was predicted for it counts before your answer does."
    : "Its label helps most: predictions here and around it are unsure.";
  byId("shown").replaceChildren(...task.shown.flatMap(cell));
  byId("likely").replaceChildren(...task.likely.map(choice));
  byId("typed").value = "";
  byId("typed").blur();
  showMatches();
  showGraph(task.graph);
}

function cell({ name, kind, value }) {
  const content = document.createElement("dd");
  if (kind === "image") content.append(make("img", { src: value, alt: name }));
  else if (kind === "link" && /^https?:\/\//.test(value)) {
    const link = make("a", { href: value, target: "_blank", rel: "noopener noreferrer" });
    link.textContent = value;
    content.append(link);
  } else content.textContent = value;
  const title = document.createElement("dt");
  title.textContent = name;
  return [title, content];
}

function choice({ class: label, probability }, place) {
  const bar = make("span", { class: "bar" });
  bar.style.width = `${100 * probability}%`;
  const name = make("span", { class: "name" });
  name.textContent = nameOf(label);
  const share = make("span", { class: "share" });
  share.textContent = percent(probability);
  const button = make("button", { type: "button" }, make("kbd", {}, String(place + 1)),
    make("span", { class: `dot ${colour(label)}` }), name, share, bar);
  button.addEventListener("click", () => answer(label));
  return button;
}

// ---- the neighbourhood: the node in the middle, a ring a hop

function showGraph({ nodes, links, left_out: leftOut }) {
  const places = ringPlaces(nodes, links);
  const lines = links.map(([a, b]) => draw("line", {
    x1: places[a].x, y1: places[a].y, x2: places[b].x, y2: places[b].y, class: a === 0 ? "first" : "",
  }));
  byId("graph").replaceChildren(...lines, ...nodes.map((node, i) => circle(node, places[i])));
  const classes = [...new Set(nodes.slice(1).map((node) => node.class))].sort((a, b) => a - b);
  const entry = (swatch, words) => make("li", {}, make("span", { class: `dot ${swatch}` }), words);
  byId("legend").replaceChildren(...classes.map((label) => entry(colour(label), nameOf(label))),
    ...(nodes.length > 1 ? [entry("full", "known"), entry("hollow", "predicted")] : []));
  byId("left-out").textContent = nodes.length === 1 ? "This node has no neighbour."
    : leftOut ? `${plural(leftOut, "more neighbour")} not drawn.` : "";
}

function ringPlaces(nodes, links) {
  const places = nodes.map(() => ({ x: 0, y: 0 }));
  const near = nodes.flatMap((node, i) => (node.hop === 1 ? [i] : []));
  near.sort((a, b) => nodes[a].class - nodes[b].class);  // alike ones side by side
  const behind = new Map(near.map((i) => [i, []]));
  nodes.forEach((node, i) => {
    if (node.hop !== 2) return;
    const [parent] = links.find(([a, b]) => b === i && behind.has(a)) || [near[0]];
    behind.get(parent).push(i);
  });
  // a neighbour's share of the circle grows with what lies behind it
  const weights = near.map((i) => 2 + behind.get(i).length);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const at = (angle, radius) => ({ x: radius * Math.sin(angle), y: -radius * Math.cos(angle) });
  let passed = 0;
  near.forEach((i, order) => {
    const turn = (part) => (2 * Math.PI * (passed + part)) / total;
    places[i] = at(turn(weights[order] / 2), 108);
    behind.get(i).forEach((far, k) => {
      places[far] = at(turn((weights[order] * (k + 0.5)) / behind.get(i).length), 192);
    });
    passed += weights[order];
  });
  return places;
}

function circle(node, { x, y }) {
  const radius = [26, 15, 11][node.hop];
  const kind = node.hop === 0 ? "asked" : `${node.known ? "known" : "guess"} ${colour(node.class)}`;
  const words = draw("text");
  words.textContent = node.hop === 0 ? "?" : shortName(node.class);
  const title = draw("title");
  title.textContent = node.hop === 0 ? `node ${node.node}`
    : `node ${node.node}: ${nameOf(node.class)} (${node.known ? "known" : "predicted"})`;
  return draw("g", { class: `hop${node.hop} ${kind}`, transform: `translate(${x} ${y})` },
    draw("circle", { r: radius }), words, title);
}

// ---- how it stands

function showStanding() {
  const told = state.estimates;
  const last = told[told.length - 1];
  const sure = Math.round(100 * state.confidence);
  byId("advice").textContent = state.advice;
  byId("trend").toggleAttribute("hidden", told.length === 0);
  byId("random").textContent = `Why some nodes are drawn at random (one in ${state.random_every}): suggested nodes are the hardest, and an accuracy `
    + "measured on them would be too low. Each random node counts as it was predicted before your answer.";
  if (!last) {
    byId("figure").textContent = "No estimate yet.";
    byId("rests").textContent = "";
    return;
  }
  const figure = make("b");
  figure.textContent = `${last.low.toFixed(0)} to ${last.high.toFixed(0)} %`;
  byId("figure").replaceChildren(figure, " of the nodes without a label are predicted rightly");
  const skipped = last.skipped ? ` ${plural(last.skipped, "random node")} skipped: it does not speak for such.` : "";
  byId("rests").textContent = `${last.right} of ${last.of} random nodes (${last.accuracy.toFixed(0)} %) after ${last.labels} labels; ${sure} % interval.${skipped}`;
  showTrend(told);
}

function showTrend(told) {
  const floor = Math.min(90, ...told.map((one) => 10 * Math.floor(one.low / 10)));
  const most = Math.max(5 * state.round, told[told.length - 1].labels);
  const x = (labels) => 42 + (300 * labels) / most;
  const y = (share) => 12 + (108 * (100 - share)) / (100 - floor);
  const marks = [floor, (floor + 100) / 2, 100].flatMap((share) => [
    draw("line", { x1: 40, x2: 350, y1: y(share), y2: y(share), class: "rule" }),
    draw("text", { x: 36, y: y(share) + 4, "text-anchor": "end" }, `${share} %`),
  ]);
  const points = told.flatMap((one) => [
    draw("line", { x1: x(one.labels), x2: x(one.labels), y1: y(one.low), y2: y(one.high), class: "reach" }),
    draw("circle", { cx: x(one.labels), cy: y(one.accuracy), r: 4 }),
  ]);
  const ends = [told[0].labels, most].map((labels) =>
    draw("text", { x: x(labels), y: 140, "text-anchor": labels === most ? "end" : "middle" }, labels === most ? `${labels} labels` : String(labels)));
  byId("trend").replaceChildren(...marks, ...points, ...ends);
}

// ---- another class, by typing

function matches() {
  const wanted = byId("typed").value.trim().toLowerCase();
  if (!wanted || !state) return [];
  const rank = (label) => {
    const name = nameOf(label).toLowerCase();
    if (name === wanted || String(label) === wanted) return 0;
    if (name.startsWith(wanted)) return 1;
    return name.includes(wanted) ? 2 : 3;
  };
  const labels = state.classes.map((_, label) => label).filter((label) => rank(label) < 3);
  return labels.sort((a, b) => rank(a) - rank(b) || a - b).slice(0, 6);
}

function showMatches() {
  const found = matches();
  const typed = Boolean(byId("typed").value.trim());
  picked = Math.max(0, Math.min(picked, found.length - 1));
  const items = found.map((label, i) => {
    const item = make("li", { role: "option", id: `match-${i}`, "aria-selected": String(i === picked) },
      make("span", { class: `dot ${colour(label)}` }), nameOf(label));
    item.addEventListener("mousedown", (event) => { event.preventDefault(); answer(label); });
    return item;
  });
  const none = make("li", {}, "No class of this name.");
  byId("matches").replaceChildren(...(typed && !items.length ? [none] : items));
  byId("matches").hidden = !typed;
  byId("typed").setAttribute("aria-expanded", String(typed));
  if (items.length) byId("typed").setAttribute("aria-activedescendant", `match-${picked}`);
  else byId("typed").removeAttribute("aria-activedescendant");
}

function keyInField(event) {
  const found = matches();
  if (event.key === "Enter" && found.length) answer(found[picked]);
  else if (event.key === "ArrowDown") picked += 1;
  else if (event.key === "ArrowUp") picked -= 1;
  else if (event.key === "Escape") { byId("typed").value = ""; byId("typed").blur(); }
  else return;
  event.preventDefault();
  showMatches();
}

function keyOnPage(event) {
  const place = "123".indexOf(event.key);
  const onButton = event.target instanceof HTMLButtonElement || event.target instanceof HTMLAnchorElement;
  if (place >= 0 && state.task.likely[place]) answer(state.task.likely[place].class);
  else if (event.key === " " && !onButton) answer(null);
  else if (event.key === "Backspace") undo();
  else if (event.key === "/") byId("typed").focus();
  else if (event.key.length === 1 && event.key !== " ") { byId("typed").focus(); return; }  // the letter goes in
  else return;
  event.preventDefault();
}

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.isComposing || event.ctrlKey || event.altKey || event.metaKey || !state) return;
  if (event.target === byId("typed")) keyInField(event);
  else if (state.task) keyOnPage(event);
  else if (event.key === "Backspace") undo();
});
byId("typed").addEventListener("input", () => { picked = 0; showMatches(); });
byId("typed").addEventListener("blur", () => { byId("matches").hidden = true; });
byId("skip").addEventListener("click", () => answer(null));
byId("undo").addEventListener("click", undo);
document.addEventListener("visibilitychange", () => document.hidden || refresh());
window.addEventListener("focus", refresh);
refresh();
