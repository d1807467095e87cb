"use strict";
const overview = document.getElementById("overview");
const page = document.getElementById("page");
const title = document.title;
function show() {
  const hash = decodeURIComponent(location.hash.slice(1));
  const template = hash.startsWith("q-") ? document.getElementById("t-" + hash.slice(2)) : null;
  page.replaceChildren();
  page.hidden = !template;
  overview.hidden = !!template;
  document.title = title;
  if (!template) return;
  page.append(template.content.cloneNode(true));
  document.title = page.querySelector("h1").textContent + " · " + title;
  window.scrollTo(0, 0);
}
addEventListener("hashchange", show);
show();
const words = document.getElementById("filter-words");
const outcome = document.getElementById("filter-outcome");
const rows = [...document.querySelectorAll("#questions tbody tr")];
const count = document.getElementById("filter-count");
function filter() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    const verdicts = row.dataset.verdicts.split(" ");
    const fits = {
      "": true,
      "differ": new Set(verdicts).size > 1,
      "all-wrong": verdicts.every((v) => v === "wrong"),
      "any-wrong": verdicts.some((v) => v === "wrong" || v === "mixed"),
      "unscored": verdicts.some((v) => v === "unscored"),
    }[outcome.value];
    row.hidden = !(fits && wanted.every((word) => text.includes(word)));
    shown += !row.hidden;
  }
  count.textContent = shown + " of " + rows.length;
}
words.addEventListener("input", filter);
outcome.addEventListener("change", filter);
filter();
