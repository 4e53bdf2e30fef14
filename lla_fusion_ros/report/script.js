"use strict";
const classes = JSON.parse(document.getElementById("class-names").textContent);
const cards = [...document.querySelectorAll(".track")], drawn = new WeakMap();
const percent = p => p >= 0.995 && p < 1 ? ">99%" : Math.round(100 * p) + "%";

// What is read off a chart is made when somebody first looks at it: there may be hundreds.
function reading(svg) {
  if (!drawn.has(svg)) {
    const card = svg.closest(".track"), read = card.querySelector(".read");
    const data = JSON.parse(card.querySelector("script").textContent);
    const [start, stop, left, right] = ["start", "stop", "left", "right"].map(name => +svg.dataset[name]);
    drawn.set(svg, { read, data, start, stop, left, right, idle: read.textContent, at: -1, cursor: svg.querySelector(".cursor") });
  }
  return drawn.get(svg);
}
function show(chart, at, x) {
  const [t, camera, single, p, top, q, entropy, why, promise] = chart.data.rows[at];
  chart.at = at;
  chart.cursor.setAttribute("x1", x); chart.cursor.setAttribute("x2", x); chart.cursor.style.visibility = "visible";
  chart.read.textContent = [`${t.toFixed(2)} s`, `${chart.data.cameras[camera]} saw ${classes[single]} ${percent(p)}`,
    `fused ${classes[top]} ${percent(q)}`, promise, `entropy ${entropy.toFixed(2)}`, why].filter(Boolean).join(" \u00b7 ")
    .replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, c => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));  // nobody sees these
}
function leave(chart) { chart.cursor.style.visibility = "hidden"; chart.read.textContent = chart.idle; }
const chartOf = event => event.target.closest && event.target.closest(".track .scroll svg");

document.addEventListener("pointermove", event => {
  const svg = chartOf(event);
  if (!svg) return;
  const chart = reading(svg), box = svg.getBoundingClientRect();
  const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
  if (x < chart.left || x > chart.right) { leave(chart); return; }
  const time = chart.start + (x - chart.left) / (chart.right - chart.left) * (chart.stop - chart.start);
  show(chart, Math.max(chart.data.rows.findLastIndex(row => row[0] <= time), 0), x);
});
for (const kind of ["pointerout", "focusout"]) document.addEventListener(kind, event => {
  const svg = chartOf(event);
  if (svg && drawn.has(svg) && !svg.contains(event.relatedTarget)) leave(drawn.get(svg));
});
document.addEventListener("keydown", event => {
  const svg = chartOf(event);
  if (!svg) return;
  const chart = reading(svg), rows = chart.data.rows;
  const step = { ArrowRight: 1, ArrowLeft: -1, Home: -rows.length, End: rows.length }[event.key];
  if (!step) return;
  event.preventDefault();
  const at = Math.min(Math.max(chart.at + step, 0), rows.length - 1);
  show(chart, at, chart.left + (rows[at][0] - chart.start) / (chart.stop - chart.start) * (chart.right - chart.left));
});

const find = document.getElementById("find"), only = document.getElementById("only"), fold = document.getElementById("fold");
function filter() {
  const words = find.value.toLowerCase();
  let shown = 0;
  for (const card of cards) {
    card.hidden = !(card.dataset.words.includes(words) && (!only.value || card.dataset.kind.split(" ").includes(only.value)));
    shown += !card.hidden;
  }
  document.getElementById("count").textContent = `${shown} of ${cards.length}`;
}
function folds() { fold.textContent = cards.every(card => card.open) ? "fold all" : "open all"; }
if (find) {
  find.addEventListener("input", filter);
  only.addEventListener("change", filter);
  fold.addEventListener("click", () => {
    const open = !cards.every(card => card.open);
    for (const card of cards) card.open = open;
    folds();
  });
  filter(); folds();
}
// A link leads to its object also where that is folded or filtered out.
function follow() {
  const card = document.getElementById(location.hash.slice(1));
  if (!card || !card.classList.contains("track")) return;
  if (card.hidden) { find.value = ""; only.value = ""; filter(); }
  card.open = true;
  card.scrollIntoView();
  card.querySelector("summary").focus({ preventScroll: true });
}
addEventListener("hashchange", follow);
follow();
