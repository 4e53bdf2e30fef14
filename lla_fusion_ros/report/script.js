"use strict";
const classes = JSON.parse(document.getElementById("class-names").textContent);
for (const card of document.querySelectorAll(".track")) {
  const svg = card.querySelector("svg"), cursor = svg.querySelector(".cursor"), read = card.querySelector(".read");
  const data = JSON.parse(card.querySelector("script").textContent), idle = read.textContent;
  const start = +svg.dataset.start, stop = +svg.dataset.stop, left = +svg.dataset.left, right = +svg.dataset.right;
  const percent = p => Math.round(100 * p) + "%";
  const leave = () => { cursor.style.visibility = "hidden"; read.textContent = idle; };
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    if (x < left || x > right) { leave(); return; }
    const time = start + (x - left) / (right - left) * (stop - start);
    let at = data.findLastIndex(point => point[0] <= time);
    if (at < 0) at = 0;
    const [t, camera, single, p, top, q, entropy, why] = data[at];
    cursor.setAttribute("x1", x); cursor.setAttribute("x2", x); cursor.style.visibility = "visible";
    read.textContent = `${t.toFixed(2)} s \u00b7 ${camera} saw ${classes[single]} ${percent(p)} \u00b7 fused ` +
      `${classes[top]} ${percent(q)} \u00b7 entropy ${entropy.toFixed(2)}${why ? " \u00b7 " + why : ""}`;
  });
}
const find = document.getElementById("find"), only = document.getElementById("only");
function filter() {
  const words = find.value.toLowerCase();
  for (const card of document.querySelectorAll(".track")) {
    const hit = card.dataset.words.includes(words) && (!only.value || card.dataset.kind.includes(only.value));
    card.hidden = !hit;
  }
}
if (find) { find.addEventListener("input", filter); only.addEventListener("change", filter); }
