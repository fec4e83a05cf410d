/* How the search of the site orders its results. Sphinx puts this file into language_data.js (option
   html_search_scorer), and searchtools.js uses it. The words that a page names in its line
   `<!-- search: ... -->` are index entries (docs/_ext/pages.py), which count most. Guides come before
   the reference, and documents about the project itself come last. tests/docs/search checks this. */
var Scorer = {
  score: ([page, , , , score]) => {
    if (page.startsWith("site/")) return score - 1000; // changelog, architecture, contributing, security
    if (/benchmarks|^compat$/.test(page)) return score - 500;
    return score;
  },
  objNameMatch: 40, // the whole name of a function or type
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 30,
  partialTitle: 12,
  term: 5,
  partialTerm: 2,
};
