// SPDX-License-Identifier: Apache-2.0
// mkdocs' search splits texts at blanks and drops all but ASCII letters, so it finds no Japanese. A query with other letters is
// looked for here, as it stands, in the same index; all else is left to mkdocs.
(() => {
  const input = () => document.getElementById("mkdocs-search-query");
  let index;

  async function find(query) {
    index ??= (await (await fetch(new URL("search/search_index.json", new URL(base_url + "/", location.href)))).json()).docs;
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    return index
      .map((doc) => ({ doc, text: (doc.title + " " + doc.text).toLowerCase() }))
      .filter(({ text }) => words.every((word) => text.includes(word)))
      .slice(0, 50)
      .map(({ doc, text }) => {
        const at = Math.max(0, text.indexOf(words[0]) - doc.title.length - 40);
        return { location: doc.location, title: doc.title, summary: doc.text.slice(at, at + 160) };
      });
  }

  document.addEventListener("keyup", async (event) => {
    const query = event.target === input() ? event.target.value.trim() : "";
    if (!/[^\x00-\x7f]/.test(query)) return;
    event.stopImmediatePropagation();
    const results = await find(query);
    if (input().value.trim() === query) displayResults(results);
  }, true);
})();
