// Notes at each cell of a wide table the heading of its column, which site.css shows where columns do not fit.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table.docutils")) {
    const headings = [...table.querySelectorAll("thead th")].map((each) => each.textContent.trim());
    const isWide = table.offsetWidth > table.parentElement.clientWidth;
    if (headings.length > 7 || headings.length < (isWide ? 2 : 3)) continue;
    table.classList.add("stacked");
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, place) => {
        if (cell.textContent.trim() === "") cell.classList.add("empty");
        else if (headings.length > 2 && headings[place]) cell.dataset.heading = headings[place];
      });
    }
  }
});
