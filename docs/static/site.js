// Prepares what site.css shows: tables that do not fit as blocks, and the names of two systems above their programs.
"use strict";

const narrowestPixels = 190;
const mostLines = 4;
const mostColumns = 7;
const fewColumns = 4;
const longNameCharacters = 24;
const longCharacters = 40;
const shortCharacters = 15;

/** True if a table has to be scrolled. */
function isWide(table) {
  return table.offsetWidth > table.parentElement.clientWidth;
}

/** True if a table is better read as blocks: it is too wide, or a cell is narrow and tall. */
function isCrowded(table) {
  if (isWide(table)) return true;
  return [...table.querySelectorAll("tbody td")].some((cell) => {
    const text = document.createRange();
    text.selectNodeContents(cell);
    const lines = text.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).lineHeight);
    return cell.offsetWidth < narrowestPixels && lines > mostLines;
  });
}

/** Marks the names of options, which never break after a hyphen. */
function markFlags() {
  for (const code of document.querySelectorAll("article code.literal")) {
    if (/^--\w{1,24}$/.test(code.textContent)) code.classList.add("flag");
  }
}

/** Lets the name of a module in a heading break after its dots. */
function breakModuleNames() {
  for (const name of document.querySelectorAll("article :is(h1, h2, h3) code > .pre")) {
    name.innerHTML = name.innerHTML.replaceAll(".", ".<wbr>");
  }
}

/** Keeps two or three words in one line: numbers such as "at least 0.9", and all in a table of few columns. */
function markShortCells() {
  for (const cell of document.querySelectorAll("article table.docutils td")) {
    const isOfFew = cell.parentElement.cells.length <= fewColumns;
    if (!isOfFew && !cell.classList.contains("text-right")) continue;
    if (cell.textContent.trim().length < shortCharacters) cell.classList.add("short");
  }
}

/** Chooses the tables that a narrow screen shows as blocks: tables with the same headings look the same. */
function stackTables() {
  const tables = [...document.querySelectorAll("article table.docutils")].map((table) => {
    const headings = [...table.querySelectorAll("thead th")].map((each) => each.textContent.trim());
    table.classList.remove("stacked");
    for (const part of table.querySelectorAll(".long, .long-name")) part.classList.remove("long", "long-name");
    return { table, headings, key: headings.join("|") };
  });
  const crowded = new Set(tables.filter(({ table }) => isCrowded(table)).map(({ key }) => key));
  for (const { table, headings, key } of tables) {
    if (headings.length < 2 || !crowded.has(key)) continue;
    if (isWide(table)) widenLongCells(table);
    if (headings.length > mostColumns) continue;
    if (isWide(table)) breakLongNames(table);
    stack(table, headings);
  }
}

/** Makes a table blocks, in which each cell but the first has the heading of its column. */
function stack(table, headings) {
  table.classList.add("stacked");
  for (const row of table.querySelectorAll("tbody tr")) {
    [...row.cells].forEach((cell, place) => {
      if (["", "-"].includes(cell.textContent.trim())) cell.classList.add("empty");
      else if (headings.length > 2 && headings[place]) cell.dataset.heading = headings[place];
    });
  }
}

/** Lets the long names of a table that is too wide break anywhere. */
function breakLongNames(table) {
  for (const name of table.querySelectorAll("td code, td a")) {
    if (name.textContent.length > longNameCharacters) name.classList.add("long-name");
  }
}

/** Gives the sentences of a table that is too wide some room, which the long names in it have to leave them. */
function widenLongCells(table) {
  for (const cell of table.querySelectorAll("tbody td")) {
    if (cell.textContent.trim().length > longCharacters) cell.classList.add("long");
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

/** Lets a picture that is shown smaller than it is open in its own size. */
function openPictures() {
  for (const picture of document.querySelectorAll("article img")) {
    if (picture.closest("a") || picture.naturalWidth <= 1.2 * picture.clientWidth) continue;
    const link = document.createElement("a");
    link.href = picture.src;
    link.classList.add("picture");
    picture.replaceWith(link);
    link.append(picture);
  }
}

// The style sheets, by which tables are measured, may come after the text.
window.addEventListener("load", () => {
  stackTables();
  openPictures();
});
document.addEventListener("DOMContentLoaded", () => {
  breakModuleNames();
  markFlags();
  markShortCells();
  stackTables();
  window.matchMedia("(max-width: 50rem)").addEventListener("change", stackTables);
  nameSystems();
});
