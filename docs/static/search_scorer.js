// Orders the results of a search: guides come before names of the reference, and those before long lists.
"use strict";

const wanted = (new URLSearchParams(window.location.search).get("q") ?? "").trim().toLowerCase();
const longLists = /^(CHANGELOG|conformance\/|docs\/(bad_input|beam_names|performance|trust|options))/;

var Scorer = {
  score: ([page, title, anchor, , score, , kind]) => {
    if (longLists.test(page)) return score - 30;
    if (kind === "object") return score - 10 - 3 * title.split(".").length;
    const bonus = !anchor && title.toLowerCase().startsWith(wanted) ? 20 : 0;
    return score + bonus - (page.startsWith("docs/reference/") ? 8 : 0);
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
