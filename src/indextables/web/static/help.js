// How to write a query: each line an example that can be tried with a click.
import { $, h } from "./dom.js";

const LINES = [
  ["timeout error", "either word; rows with both come no earlier unless sorted by score"],
  ["timeout AND error", "both words; also && or +timeout +error"],
  ["timeout NOT debug", "without a word; also -debug or !debug"],
  ['"connection reset"', "the words in a row; \"...\"~2 lets two others stand between"],
  ["conn*", "words that begin so"],
  ["level:error", "in one column"],
  ["status:[500 TO 599]", "a range; {} leaves the ends out, * is open"],
  ["level: IN [warn error]", "one of several values"],
  ["user:*", "rows that have a value"],
  ["(reset OR timeout) AND login", "brackets group"],
];
const KEYS = [
  ["/", "to the search box"], ["?", "this help"], ["\u2191 \u2193 or j k", "from row to row"], ["Enter", "open the row"], ["Esc", "close, or give the search up"],
];

export function showHelp(table, onTry) {
  const dialog = $("help");
  const names = table.columns.filter((column) => column.index).map((column) => `${column.name} (${column.index})`);
  const attempt = (text) => h("button", { type: "button", title: "Put it into the search box", onclick: () => { dialog.close(); onTry(text); } }, text);
  dialog.replaceChildren(
    h("header", {}, h("h2", {}, "How to write a query"), h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => dialog.close() }, "\u2715")),
    h("div", { class: "body help" },
      h("p", {}, names.length ? `Searchable here: ${names.join(", ")}. A word without a column is looked for in all of them.` : "No column of this table is indexed for search; use the filters, or a SQL condition."),
      h("table", {}, h("tbody", {}, LINES.map(([text, means]) => h("tr", {}, h("td", {}, attempt(text)), h("td", {}, means))))),
      h("h3", {}, "Keys"),
      h("table", {}, h("tbody", {}, KEYS.map(([key, means]) => h("tr", {}, h("td", {}, h("kbd", {}, key)), h("td", {}, means))))),
    ),
  );
  dialog.showModal();
}
