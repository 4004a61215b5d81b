// Prepares what site.css shows: tables that do not fit as blocks, and the names of two systems above their programs.
"use strict";

const narrowest = 190;
const mostLines = 4;

/** True if a table of two columns is better read as blocks: it is too wide, or a cell is narrow and tall. */
function isCrowded(table) {
  if (table.offsetWidth > table.parentElement.clientWidth) return true;
  return [...table.querySelectorAll("tbody td")].some((cell) => {
    const lines = cell.clientHeight / parseFloat(getComputedStyle(cell).lineHeight);
    const text = document.createRange();
    text.selectNodeContents(cell);
    return cell.offsetWidth < narrowest && text.getBoundingClientRect().height > 0.8 * cell.clientHeight && lines > mostLines;
  });
}

/** Notes at each cell the heading of its column; tables with the same headings look the same. */
function stackTables() {
  const tables = [...document.querySelectorAll("article table.docutils")].map((table) => {
    const headings = [...table.querySelectorAll("thead th")].map((each) => each.textContent.trim());
    return { table, headings, key: headings.join("|") };
  });
  const crowded = new Set(tables.filter(({ table }) => isCrowded(table)).map(({ key }) => key));
  for (const { table, headings, key } of tables) {
    if (headings.length > 7 || headings.length < (crowded.has(key) ? 2 : 3)) continue;
    table.classList.add("stacked");
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, place) => {
        if (["", "-"].includes(cell.textContent.trim())) cell.classList.add("empty");
        else if (headings.length > 2 && headings[place]) cell.dataset.heading = headings[place];
      });
    }
  }
}

/** Names the two systems of a page such as "Coming from Flink": each program of the other one is before ours. */
function nameSystems() {
  const other = document.querySelector("article h1")?.firstChild?.textContent.match(/^Coming from (.*)$/)?.[1];
  if (!other) return;
  for (const theirs of document.querySelectorAll("article .highlight-python")) {
    const ours = theirs.nextElementSibling;
    if (!ours?.classList.contains("highlight-pycon")) continue;
    theirs.dataset.system = other;
    theirs.classList.add("of-other");
    ours.dataset.system = "penstock";
    ours.classList.add("of-penstock");
  }
}

document.addEventListener("DOMContentLoaded", () => {
  stackTables();
  nameSystems();
});
