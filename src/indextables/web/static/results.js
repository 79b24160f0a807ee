// The rows: a table on a wide screen, cards on a narrow one, and one row in full.
import { $, bytes, count, h, marked, plural, shown } from "./dom.js";
import { readable } from "./times.js";

const LONG = 48;

export function showRows(answer, table, state, { onSort, onOpen }) {
  const place = $("rows");
  if (!answer.rows.length) {
    place.replaceChildren(h("div", { class: "nothing" }, h("b", {}, "No row matches"), state.page ? "There are fewer pages than that." : "Try fewer words, another time, or fewer filters."));
    return;
  }
  const kinds = kindsOf(answer, table);
  const body = h("tbody", {}, answer.rows.map((row, i) => line(answer, row, i, kinds, onOpen)));
  body.addEventListener("keydown", (event) => walk(event));
  place.replaceChildren(h("table", { "aria-label": "Rows found" }, heads(answer, kinds, state, table, onSort), body));
}

// Rows that came in while the page was open go on top, newest first.
export function addRows(answer, rows, table, onOpen, most) {
  const body = $("rows").querySelector("tbody");
  if (!body) return false;
  const kinds = kindsOf(answer, table);
  for (const row of rows) {
    const node = line({ ...answer, marks: null }, row, -1, kinds, onOpen);
    node.classList.add("fresh");
    body.prepend(node);
  }
  while (body.children.length > most) body.lastElementChild.remove();
  return true;
}

function kindsOf(answer, table) {
  return answer.columns.map((column, at) => {
    const known = table.columns.find((other) => other.name === column.name) || {};
    if (known.time) return "time";
    if (known.number) return "number";
    const long = answer.rows.some((row) => row[at] !== null && String(typeof row[at] === "object" ? JSON.stringify(row[at]) : row[at]).length > LONG);
    return long || known.index === "text" || known.index === "json" ? "long" : "short";
  });
}

function heads(answer, kinds, state, table, onSort) {
  const cells = answer.columns.map((column, at) => {
    const known = table.columns.find((other) => other.name === column.name);
    const canSort = !table.delta && known?.sortable;
    const on = state.sort === column.name;
    const arrow = on ? (state.order === "desc" ? " \u2193" : " \u2191") : "";
    const label = canSort ? h("button", { type: "button", title: `${column.type}. Click to sort.`, onclick: () => onSort(column.name) }, column.name + arrow) : h("span", { title: column.type }, column.name);
    return h("th", { scope: "col", class: kinds[at], "aria-sort": on ? (state.order === "desc" ? "descending" : "ascending") : null }, label);
  });
  return h("thead", {}, h("tr", {}, cells));
}

function line(answer, row, number, kinds, onOpen) {
  const open = () => onOpen(number, row);
  const cells = row.map((value, at) => {
    const pieces = answer.marks?.[number]?.[answer.columns[at].name];
    const content = pieces ? marked(pieces) : kinds[at] === "time" && value !== null ? readable(value) : shown(value, 6);
    const inside = kinds[at] === "long" ? h("div", { class: "clip" }, content) : content;
    return h("td", { class: kinds[at], "data-name": answer.columns[at].name }, inside);
  });
  const keys = (event) => {
    if (event.key === "Enter") open();
  };
  return h("tr", { tabindex: "0", "aria-describedby": "row-keys", onclick: () => String(getSelection()) || open(), onkeydown: keys }, cells);
}

function walk(event) {
  const step = { ArrowDown: "nextElementSibling", j: "nextElementSibling", ArrowUp: "previousElementSibling", k: "previousElementSibling" }[event.key];
  const next = step && event.target.closest("tr")?.[step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

export function showHow(found) {
  const { search } = found;
  const facts = [];
  const files = found.considered || 0;
  const pruned = (found.pruned_by_partition || 0) + (found.skipped_by_statistics || 0);
  const read = Math.max(0, files - pruned - (search?.ruled_out || 0));
  const fact = (name, text) => facts.push(h("dt", {}, name), h("dd", {}, text));
  fact("Time", `${found.milliseconds.toLocaleString("en")} ms`);
  if (found.bytes_read !== undefined) fact("Read from files", found.bytes_read ? bytes(found.bytes_read) : "nothing: it was still in memory");
  if (files) {
    fact("Files in the table", count(files));
    fact("Ruled out by partition", count(found.pruned_by_partition));
    fact("Ruled out by statistics", count(found.skipped_by_statistics));
    if (search?.ruled_out) fact("Ruled out by word filters", count(search.ruled_out));
    fact("Files searched", count(read));
  }
  if (search?.splits) {
    fact("Answered by the index", plural(search.by_index, "file"));
    if (search.scanned) fact("Without a usable index, scanned", plural(search.scanned, "file"));
    fact("Rows with the words", count(search.hits));
  }
  if (found.coverage) fact("Files of the source", `${count(found.coverage.indexed)} indexed, ${count(found.coverage.scanned)} scanned, ${count(found.coverage.masked)} masked`);
  if (found.engine && found.engine !== "none") fact("Log read with", `the ${found.engine} engine`);
  const part = (n, kind) => h("i", { class: kind, style: { width: `${(100 * n) / Math.max(1, files)}%` } });
  const funnel = files ? [h("div", { class: "funnel", role: "img", "aria-label": `${read} of ${files} files were looked into` }, part(read, "read"), part(files - read, ""))] : [];
  $("how-body").replaceChildren(...funnel, h("dl", { class: "facts" }, facts));
}

export function showRow(answer, row, title, { onFilter, moves }) {
  const dialog = $("row");
  const object = Object.fromEntries(answer.columns.map((column, at) => [column.name, row[at]]));
  const fields = answer.columns.flatMap((column, at) => {
    const value = row[at];
    const simple = value === null || typeof value !== "object";
    const pieces = answer.marks?.[0]?.[column.name];
    const act = (sign, label, not) => h("button", { type: "button", class: "quiet", title: label, "aria-label": `${label}: ${column.name}`, onclick: () => onFilter(column.name, value, not) }, sign);
    return [
      h("dt", { title: column.type }, column.name),
      h("dd", {}, pieces ? marked(pieces) : simple ? shown(value) : JSON.stringify(value, null, 2)),
      h("div", { class: "act" }, simple && onFilter ? [act("+", "Only rows with this value", false), act("\u2212", "Leave out rows with this value", true)] : ""),
    ];
  });
  const copy = h("button", { type: "button", onclick: () => navigator.clipboard?.writeText(JSON.stringify(object, null, 2)).then(() => (copy.textContent = "Copied")) }, "Copy as JSON");
  const close = h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => dialog.close() }, "\u2715");
  const step = (sign, label, move) => h("button", { type: "button", class: "quiet", "aria-label": label, title: label, disabled: !move, onclick: move }, sign);
  const steps = moves ? [step("\u2191", "Row before", moves[0]), step("\u2193", "Row after", moves[1])] : [];
  dialog.replaceChildren(h("header", {}, h("h2", {}, title), steps, copy, close), h("div", { class: "body" }, h("dl", { class: "fields" }, fields)));
  dialog.onkeydown = (event) => {
    const move = moves?.[{ ArrowUp: 0, k: 0, ArrowDown: 1, j: 1 }[event.key]];
    if (move) {
      event.preventDefault();
      move();
    }
  };
  if (!dialog.open) dialog.showModal();
}
