// How to write a query: each line an example that can be tried with a click.
import { $, h } from "./dom.js";

const LINES = [
  ["timeout error", "either word; sort by best match to see rows with both first"],
  ["timeout AND error", "both words; also && or +timeout +error"],
  ["timeout NOT debug", "without a word; also -debug or !debug"],
  ['"connection reset"', "these words next to each other; \"...\"~2 allows two others in between"],
  ["conn*", "words that begin with conn"],
  ["level:error", "in one column"],
  ["status:[500 TO 599]", "a range; { and } leave the ends out, * means no limit"],
  ["level: IN [warn error]", "any of these values"],
  ["user:*", "rows that have any value"],
  ["(reset OR timeout) AND login", "brackets group words"],
];
const KEYS = [
  ["/", "go to the search box"], ["?", "show this help"], ["\u2191 \u2193 or j k", "move from row to row"], ["Enter", "open the row"], ["Esc", "close what is open, or cancel the search"],
];

export function showHelp(table, onTry) {
  const dialog = $("help");
  const names = table.columns.filter((column) => column.index).map((column) => `${column.name} (${column.index})`);
  const attempt = (text) => h("button", { type: "button", title: "Put it into the search box", onclick: () => { dialog.close(); onTry(text); } }, text);
  dialog.replaceChildren(
    h("header", {}, h("h2", {}, "How to write a query"), h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => dialog.close() }, "\u2715")),
    h("div", { class: "body help" },
      h("p", {}, names.length ? `Searchable here: ${names.join(", ")}. A word without a column is searched in all of them.` : "No column of this table is indexed for search; use the filters, or a SQL condition."),
      h("table", {}, h("tbody", {}, LINES.map(([text, means]) => h("tr", {}, h("td", {}, attempt(text)), h("td", {}, means))))),
      h("h3", {}, "Keys"),
      h("table", {}, h("tbody", {}, KEYS.map(([key, means]) => h("tr", {}, h("td", {}, h("kbd", {}, key)), h("td", {}, means))))),
    ),
  );
  dialog.showModal();
}
