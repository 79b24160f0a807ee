// Counts of values, column by column: a click asks for the value, the sign beside it for all others.
import { ask } from "./api.js";
import { $, count, h, plural, shown } from "./dom.js";
import { chosen } from "./state.js";

const OPEN_AT_FIRST = 4;
const opened = new Set();
const closed = new Set();

export function facetColumns(table) {
  if (table.delta) return [];
  const rank = (column) => (column.index === "string" ? 0 : column.partition ? 1 : column.number ? 3 : 2);
  return table.columns.filter((column) => column.facet).sort((a, b) => rank(a) - rank(b));
}

export async function showFacets(table, params, filters, signal, onToggle) {
  const place = $("facets");
  const columns = facetColumns(table);
  const panels = columns.map((column, i) => {
    const isOpen = opened.has(column.name) || (i < OPEN_AT_FIRST && !closed.has(column.name));
    return { column, isOpen, node: panel(column, isOpen) };
  });
  const kept = new Map([...place.children].map((node) => [node.dataset.column, node]));
  for (const item of panels) {
    const before = kept.get(item.column.name);
    if (item.isOpen && before?.querySelector(".value")) item.node = before;
    item.node.classList.toggle("loading", item.isOpen);
  }
  place.replaceChildren(...panels.map((item) => item.node));
  place.onclick = (event) => {
    const head = event.target.closest("h3 button");
    if (!head) return;
    const { column } = head.closest(".facet").dataset;
    const wasOpen = head.getAttribute("aria-expanded") === "true";
    (wasOpen ? closed : opened).add(column);
    (wasOpen ? opened : closed).delete(column);
    showFacets(table, params, filters, signal, onToggle);
  };
  await Promise.all(panels.filter((item) => item.isOpen).map((item) => fill(item, table, params, filters, signal, onToggle)));
}

function panel(column, isOpen) {
  const head = h("h3", {}, column.name, h("button", { type: "button", class: "quiet", "aria-expanded": String(isOpen), "aria-label": `${isOpen ? "Hide" : "Count"} values of ${column.name}` }, isOpen ? "hide" : "count"));
  return h("section", { class: "facet", "data-column": column.name }, head, h("div", { class: "values" }));
}

async function fill({ column, node }, table, params, filters, signal, onToggle) {
  const values = node.querySelector(".values");
  try {
    const found = await ask(table.name, "facets", { ...params, column: column.name }, signal);
    const most = Math.max(1, ...found.values.map((item) => item.count));
    const lines = found.values.map((item) => line(column.name, item, most, filters, onToggle));
    values.replaceChildren(...lines, found.more ? h("span", { class: "faint" }, "and others") : "", lines.length ? "" : h("span", { class: "faint" }, "no values"));
    node.classList.remove("loading");
  } catch (error) {
    if (error.name === "AbortError") return;
    node.classList.remove("loading");
    values.replaceChildren(h("span", { class: "faint" }, error.message));
  }
}

function line(column, item, most, filters, onToggle) {
  const mode = chosen(filters, column, item.value);
  const text = item.value === null ? "null" : String(item.value);
  return h(
    "div",
    { class: `value ${mode}` },
    h("span", { class: "share", style: { width: `${(100 * item.count) / most}%` } }),
    h("button", { type: "button", class: "name", title: text, "aria-label": `${column} ${text}, ${plural(item.count, "row")}`, "aria-pressed": String(mode === "on"), onclick: () => onToggle(column, item.value, false) }, shown(item.value)),
    h("span", { class: "count", "aria-hidden": "true" }, count(item.count)),
    h("button", { type: "button", class: "not", title: `Leave out ${text}`, "aria-label": `Leave out ${column} ${text}`, "aria-pressed": String(mode === "off"), onclick: () => onToggle(column, item.value, true) }, "\u2212"),
  );
}
