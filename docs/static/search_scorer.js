// Orders the results of a search: titles with its words come first, guides before names of the reference and long lists.
"use strict";

const wanted = (new URLSearchParams(window.location.search).get("q") ?? "").trim().toLowerCase();
const longLists = /^(CHANGELOG|conformance\/|docs\/(bad_input|beam_names|performance|trust|options))/;
const comparisons = /^docs\/(from_|comparison|glossary)/;

/** The words of a text without their endings, so that "joins" is "join". */
function stems(text) {
  const words = text.toLowerCase().match(/[\w]+/g) ?? [];
  return words.filter((word) => !/^\d+$/.test(word)).map((word) => word.replace(/(?<=\w{3})(ing|ed|s)$/, ""));
}

const asked = [...new Set(stems(wanted))];

/** How well the last part of a title, which is that of the section, has the words of the search. */
function fitOf(title) {
  const found = new Set(stems(title.split(" > ").pop()));
  const common = asked.filter((word) => found.has(word)).length;
  return asked.length ? (40 * common) / asked.length - (common ? Math.min(found.size - common, 8) : 0) : 0;
}

var Scorer = {
  score: ([page, title, , , score, , kind]) => {
    if (longLists.test(page)) return score - 30;
    if (kind === "object") {
      const parts = title.toLowerCase().split(".");
      return score - 10 - 3 * parts.length + (parts.at(-1) === wanted ? 25 : 0);
    }
    if (comparisons.test(page)) return score - 15 + fitOf(title) / 4;
    return score + fitOf(title) - (page.startsWith("docs/reference/") ? 8 : 0);
  },
  objNameMatch: 30,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
