"use strict";
const classes = JSON.parse(document.getElementById("class-names").textContent);
for (const card of document.querySelectorAll(".track")) {
  const svg = card.querySelector("svg"), cursor = svg.querySelector(".cursor"), read = card.querySelector(".read");
  const data = JSON.parse(card.querySelector("script").textContent), idle = read.textContent;
  const start = +svg.dataset.start, stop = +svg.dataset.stop, left = +svg.dataset.left, right = +svg.dataset.right;
  const percent = p => Math.round(100 * p) + "%";
  const leave = () => { cursor.style.visibility = "hidden"; read.textContent = idle; };
  const show = (at, x) => {
    const [t, camera, single, p, top, q, entropy, why] = data[at];
    cursor.setAttribute("x1", x); cursor.setAttribute("x2", x); cursor.style.visibility = "visible";
    read.textContent = `${t.toFixed(2)} s \u00b7 ${camera} saw ${classes[single]} ${percent(p)} \u00b7 fused ` +
      `${classes[top]} ${percent(q)} \u00b7 entropy ${entropy.toFixed(2)}${why ? " \u00b7 " + why : ""}`;
  };
  let at = -1;
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    if (x < left || x > right) { leave(); return; }
    const time = start + (x - left) / (right - left) * (stop - start);
    at = Math.max(data.findLastIndex(point => point[0] <= time), 0);
    show(at, x);
  });
  svg.tabIndex = 0;
  read.setAttribute("aria-live", "polite");
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", event => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -data.length, End: data.length }[event.key];
    if (!step) return;
    event.preventDefault();
    at = Math.min(Math.max(at + step, 0), data.length - 1);
    show(at, left + (data[at][0] - start) / (stop - start) * (right - left));
  });
}
const find = document.getElementById("find"), only = document.getElementById("only");
function filter() {
  const words = find.value.toLowerCase();
  let shown = 0;
  for (const card of document.querySelectorAll(".track")) {
    const hit = card.dataset.words.includes(words) && (!only.value || card.dataset.kind.split(" ").includes(only.value));
    card.hidden = !hit;
    shown += hit;
  }
  document.getElementById("count").textContent = words || only.value ? shown + " shown" : "";
}
if (find) { find.addEventListener("input", filter); only.addEventListener("change", filter); }
