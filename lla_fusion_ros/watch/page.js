"use strict";
// Everything that comes from the graph is set as text, never as HTML.
const SAYS = { out_of_distribution: "unknown object", identity_switch: "identity switch",
  camera_disagreement: "cameras disagree", cannot_tell: "cannot tell: bad pictures", nothing_there: "nothing there" };
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800"], NOTHING = "#7a7a7a";
const MEANT = { blue: 0, orange: 1, amber: 1, green: 2, red: 5, yellow: 6 };
const MILD = ["cannot tell", "nothing there"];
const IN_VIEW = 2;
const $ = id => document.getElementById(id);
const rows = new Map(), cards = new Map(), colours = new Map();
let state = null, paused = false, sortKey = "id", down = false, open = null, asked = 0;

function make(tag, parent, css) {
  const element = document.createElement(tag);
  if (css) element.className = css;
  return parent ? parent.appendChild(element) : element;
}
// Characters that nobody sees may turn a name around: they are shown as escapes.
const plain = text => text.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, c => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
function say(element, text) { text = plain(text); if (element.textContent !== text) element.textContent = text; }
function draw(tag, parent, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent.appendChild(element);
}
const percent = p => (p > 0.9995 && p < 1 ? ">99.9" : (100 * p).toFixed(p > 0.99 && p < 1 ? 1 : 0)) + "%";
const reasons = text => text.split(" ").filter(Boolean).map(word => SAYS[word] || word.replaceAll("_", " ")).join(", ");
const inView = each => each.age < IN_VIEW;

function tile(name, value, css) {
  let card = cards.get(name);
  if (!card) {
    card = make("div", $("tiles"));
    card.value = make("b", card);
    make("span", card).textContent = name;
    cards.set(name, card);
  }
  card.className = "tile " + css;
  say(card.value, value);
}

function showTop() {
  const seen = state.objects.filter(inView), warned = seen.filter(each => each.level > 0).length;
  const unsure = seen.filter(each => each.answer === "cannot tell").length;
  const lost = state.cameras.reduce((sum, each) => sum + each.lost, 0);
  const rate = state.cameras.reduce((sum, each) => sum + each.rate, 0);
  tile("objects in view", String(seen.length), "");
  tile("warned of", String(warned), warned ? "error" : "");
  tile("cannot tell", String(unsure), unsure ? "warn" : "");
  tile("frames per second", rate.toFixed(1), rate ? "" : "warn");
  tile("messages lost by nodes", String(lost), lost ? "warn" : "");
  say($("nodes"), state.nodes.map(each => [each.name, each.message, each.fuser && "fuser " + each.fuser,
    each["latency p50 ms"] && "latency " + each["latency p50 ms"] + " ms", each.busy && "busy " + each.busy]
    .filter(Boolean).join(" · ")).join("   "));
}

function showCameras() {
  for (const each of state.cameras) {
    let card = cards.get("camera " + each.name);
    if (!card) {
      card = make("div", $("cameras"), "camera");
      card.head = make("bdi", make("b", card));
      card.text = make("p", card);
      card.image = make("img", card);
      card.image.hidden = true;
      card.image.alt = "newest image of " + each.name + " with boxes and classes";
      card.image.onload = () => { card.image.hidden = false; card.busy = false; };
      card.image.onerror = () => { card.busy = false; };
      card.shown = -1;
      cards.set("camera " + each.name, card);
    }
    say(card.head, each.name);
    say(card.text, each.rate.toFixed(1) + " Hz · " + (each.message || "no diagnostics") + (each.lost ? " · lost " + each.lost : ""));
    card.text.className = each.level > 1 ? "error" : each.level ? "warn" : "soft";
    const now = performance.now();
    // without a picture: ask now and then, so that the watcher listens for one
    const due = each.picture === card.shown ? now - (card.asked || 0) > 2000 : now - (card.asked || 0) > 240;
    if (due && (!card.busy || now - card.asked > 3000) && !document.hidden) {
      card.busy = true; card.asked = now; card.shown = each.picture;
      card.image.src = "picture?camera=" + encodeURIComponent(each.name) + "&n=" + each.picture + (each.picture ? "" : "." + Math.round(now));
    }
  }
}

const HEADS = ["object", "fused", "probability", "error ≤", "set", "last frames", "entropy", "changes", "warning"];
function row(each) {
  const line = make("tr");
  line.cellsOf = HEADS.map(name => { const cell = make("td", line); cell.dataset.name = name; return cell; });
  line.open = make("button", line.cellsOf[0]);
  line.open.type = "button";
  line.name = make("bdi", line.open);
  line.open.onclick = () => { open = each.n; asked = 0; showHistory(); };
  line.label = make("bdi", line.cellsOf[1]);
  line.bar = make("i", make("span", line.cellsOf[2], "meter"));
  line.p = make("span", line.cellsOf[2]);
  line.choices = make("bdi", line.cellsOf[4]);
  line.seen = new Map();
  return line;
}

function fill(line, each) {
  const cells = line.cellsOf;
  line.className = (inView(each) ? "" : "gone ") + (MILD.includes(each.answer) ? "tell" : each.look ? "look" : "");
  say(line.name, (each.source ? each.source + " " : "") + each.id || "(no id)");
  say(line.label, each.class);
  line.bar.style.width = 100 * each.p + "%";
  say(line.p, percent(each.p));
  say(cells[3], each.bound === null || each.bound >= 1 ? "" : percent(each.bound));
  say(line.choices, each.set);
  for (const [camera, [label, p]] of Object.entries(each.seen)) {
    let part = line.seen.get(camera);
    if (!part) line.seen.set(camera, part = make("bdi", make("div", cells[5])));
    say(part, camera + ": " + label + " " + percent(p));
    part.className = label === each.class ? "" : "against";
  }
  say(cells[6], each.entropy.toFixed(2));
  say(cells[7], each.changes ? String(each.changes) : "");
  say(cells[8], reasons(each.reasons) || (each.answer === "known" ? "" : each.answer));
  cells[8].className = MILD.includes(each.answer) ? "warn" : "error";
}

function showRows() {
  const words = $("find").value.toLowerCase(), which = $("which").value;
  const shown = state.objects.filter(each => (which === "all" || inView(each)) && (which !== "look" || each.look) &&
    (each.id + " " + each.class + " " + each.reasons).toLowerCase().includes(words));
  const order = (a, b) => typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : (a === null) - (b === null) || a - b;
  shown.sort((a, b) => (down ? -1 : 1) * order(a[sortKey], b[sortKey]) || a.n - b.n);
  const body = $("rows"), known = new Set(state.objects.map(each => each.n));
  for (const [n, line] of rows) if (!known.has(n)) { line.remove(); rows.delete(n); }
  const lines = shown.map(each => {
    if (!rows.has(each.n)) rows.set(each.n, row(each));
    fill(rows.get(each.n), each);
    return rows.get(each.n);
  });
  for (const line of [...body.children]) if (!lines.includes(line)) line.remove();
  lines.forEach((line, at) => { if (body.children[at] !== line) body.insertBefore(line, body.children[at] || null); });
  say($("count"), shown.length + " of " + state.objects.length);
  $("empty").hidden = state.objects.length > 0;
}

async function showHistory() {
  $("history").hidden = open === null;
  if (open === null || performance.now() - asked < 900) return;
  asked = performance.now();
  const each = state.objects.find(object => object.n === open);
  if (!each) return;
  say($("history-title"), each.id + " · " + each.class + " " + percent(each.p));
  let points;
  try { points = await (await fetch("history?n=" + open)).json(); } catch { return; }
  const chart = $("chart"), legend = $("legend");
  chart.replaceChildren(); legend.replaceChildren();
  if (!points.length) return;
  const start = points[0][0], span = Math.max(points.at(-1)[0] - start, 0.1);
  const x = stamp => 56 + 834 * (stamp - start) / span, y = p => 150 - 140 * p;
  const classes = [...new Set(points.map(point => point[2]))];
  for (const label of classes) if (!colours.has(label)) {
    const word = label.toLowerCase().split(" ").find(each => Object.hasOwn(MEANT, each));
    colours.set(label, label === "nothing_there" ? NOTHING
      : COLOURS[word ? MEANT[word] : colours.size % COLOURS.length]);
  }
  const colour = label => colours.get(label);
  draw("rect", chart, { x: 56, y: 10, width: 834, height: 140, class: "ground" });
  let line = "";
  points.forEach(([stamp, , label, p, entropy, level, why], at) => {
    const left = x(stamp), wide = Math.max((at + 1 < points.length ? x(points[at + 1][0]) : left + 2) - left, 1);
    draw("rect", chart, { x: left, y: y(p), width: wide, height: 150 - y(p), fill: colour(label) });
    if (level || why) draw("rect", chart, { x: left, y: 154, width: wide, height: 8, class: /cannot_tell|nothing_there/.test(why) ? "doubt" : "alarm" });
    if (at && points[at - 1][2] !== label) draw("line", chart, { x1: left, x2: left, y1: 4, y2: 152, class: "change" });
    line += (at ? "L" : "M") + left.toFixed(1) + "," + y(Math.min(entropy / 4, 1)).toFixed(1);
  });
  draw("path", chart, { d: line, class: "entropy" });
  for (const [text, at] of [["100%", 18], ["0", 150], ["warned", 164]]) draw("text", chart, { x: 0, y: at }).textContent = text;
  draw("text", chart, { x: 56, y: 182 }).textContent = "-" + span.toFixed(1) + " s";
  draw("text", chart, { x: 868, y: 182 }).textContent = "now";
  for (const label of classes.slice(0, 12)) {
    const entry = make("span", legend), mark = draw("svg", entry, { viewBox: "0 0 12 12" });
    draw("rect", mark, { width: 12, height: 12, rx: 3, fill: colour(label) });
    say(make("bdi", entry), label);
  }
  make("span", legend).textContent = "line: entropy (0 to 4) · dashed: class changed";
}

function show() { if (state) { showTop(); showCameras(); showRows(); showHistory(); } }

function pause() {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  say($("pause"), paused ? "Go on" : "Pause");
  if (paused) say($("link"), "paused");
}
$("pause").onclick = pause;
$("close").onclick = () => { open = null; showHistory(); };
$("find").oninput = $("which").onchange = () => state && showRows();
for (const button of document.querySelectorAll("th button")) button.onclick = () => {
  down = sortKey === button.dataset.key ? !down : button.dataset.key === "look" || button.dataset.key === "entropy" || button.dataset.key === "changes";
  sortKey = button.dataset.key;
  for (const head of document.querySelectorAll("th")) head.removeAttribute("aria-sort");
  button.parentElement.setAttribute("aria-sort", down ? "descending" : "ascending");
  if (state) showRows();
};
document.addEventListener("keydown", event => {
  const typing = event.target.closest("input,select,button");
  if (event.key === "Escape") { if (typing) typing.blur(); open = null; showHistory(); }
  else if (typing) return;
  else if (event.key === " ") { event.preventDefault(); pause(); }
  else if (event.key === "/") { event.preventDefault(); $("find").focus(); }
});

const events = new EventSource("events");
events.onmessage = event => {
  if (paused) return;
  state = JSON.parse(event.data);
  say($("link"), "live"); $("link").className = "state";
  show();
};
events.onerror = () => { say($("link"), "the watcher is gone"); $("link").className = "state off"; };
