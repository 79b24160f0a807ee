// The page: its state comes from the address, questions go to the server, answers into the document.
import { address, ask } from "./api.js";
import { Chart } from "./chart.js";
import { $, count, h, plural, shown } from "./dom.js";
import { showFacets } from "./facets.js";
import { showHelp } from "./help.js";
import { addRows, showHow, showRow, showRows } from "./results.js";
import { addressOf, readState, toggled, writeState } from "./state.js";
import { Tail } from "./tail.js";
import { forInput, iso, instant, readable } from "./times.js";
import { showAbout, showFiles, showVersions } from "./views.js";

const PAGE = 50;
const SHOWN_COLUMNS = 8;

let tables = [];
let table = null;
let state = readState();
let running = null;
let answer = null;
const chart = new Chart((from, to) => go({ from, to, page: 0 }));
const tail = new Tail(onArrived, onTailChange);

// What a question to the server carries.
function params() {
  return {
    q: state.q, where: state.where, filters: state.filters.length ? JSON.stringify(state.filters) : "", version: state.version,
    ...(state.from || state.to ? { time: table.time, from: state.from, to: state.to } : {}),
  };
}

function order() {
  if (state.sort !== null) return { sort: state.sort, order: state.order };
  return table.time && !table.delta ? { sort: table.time, order: "desc" } : { sort: "", order: "" };
}

function columns() {
  if (state.columns) return state.columns;
  const names = table.columns.map((column) => column.name);
  if (names.length <= SHOWN_COLUMNS) return names;
  const important = (column) => (column.name === table.time ? 0 : column.index === "text" ? 1 : column.index ? 2 : 3);
  const kept = [...table.columns].sort((a, b) => important(a) - important(b)).slice(0, SHOWN_COLUMNS).map((column) => column.name);
  return names.filter((name) => kept.includes(name));
}

// Change the state, write it into the address and show it.
function go(change, replace = false) {
  state = { ...state, ...change };
  writeState(state, replace);
  render();
}

function setBusy(on) {
  $("go").textContent = on ? "Cancel" : "Search";
  $("go").classList.toggle("busy", on);
  $("rows").classList.toggle("loading", on);
  $("rows").setAttribute("aria-busy", String(on));
}

function giveUp() {
  running?.abort();
  running = null;
  setBusy(false);
  for (const node of document.querySelectorAll(".loading")) node.classList.remove("loading");
}

async function render() {
  giveUp();
  tail.stop();
  document.querySelectorAll("details[open] > .popover").forEach((node) => node.parentElement.removeAttribute("open"));
  table = tables.find((one) => one.name === state.table) || tables[0];
  state.table = table.name;
  if (state.version && Number(state.version) !== table.version) await reload();
  else if (!state.version && table.pinned) await reload();
  showFrame();
  running = new AbortController();
  const { signal } = running;
  try {
    if (state.tab === "search") await search(signal);
    else if (state.tab === "files") await showFiles(state, params(), signal, (step) => go({ page: state.page + step }));
    else if (state.tab === "versions") await showVersions(state, signal);
    else await showAbout(state, signal);
  } catch (error) {
    if (error.name !== "AbortError") complain(error);
  } finally {
    if (running?.signal === signal) giveUp();
  }
}

async function reload() {
  const found = await ask(null, "", { table: state.table, version: state.version });
  tables = found.tables;
  table = tables.find((one) => one.name === state.table);
  table.pinned = Boolean(state.version);
}

// Everything that needs no answer from the server: tabs, fields, chips.
function showFrame() {
  document.title = `${state.q ? `${state.q} - ` : ""}${table.name} - IndexTables`;
  $("table").replaceChildren(...tables.map((one) => h("option", { value: one.name, selected: one.name === table.name }, one.name)));
  $("version").textContent = state.version ? `as of version ${state.version}` : `version ${table.version}`;
  $("version").classList.toggle("old", Boolean(state.version));
  for (const link of document.querySelectorAll("#tabs a")) {
    const on = link.dataset.tab === state.tab;
    if (on) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    link.href = addressOf({ ...state, tab: link.dataset.tab, page: 0 });
  }
  for (const name of ["search", "files", "versions", "about"]) $(`view-${name}`).hidden = name !== state.tab;
  $("query").value = state.q;
  $("where").value = state.where;
  $("range").hidden = !table.time;
  $("from").value = forInput(state.from);
  $("to").value = forInput(state.to);
  $("range-clear").hidden = !(state.from || state.to);
  $("tail").hidden = table.delta || Boolean(state.version);
  $("problem").hidden = true;
  $("notes").hidden = true;
  showChips();
  showSort();
  showColumns();
  showDownloads();
}

function showChips() {
  const chip = (name, text, label, drop, not = false) => h("li", { class: `chip${not ? " not" : ""}` }, h("span", {}, h("b", {}, name), " ", text), h("button", { type: "button", "aria-label": `Remove the filter ${label}`, onclick: drop }, "\u2715"));
  const chips = state.filters.map((item) => {
    const values = item.values.map((value) => (value === null ? "null" : String(value))).join(" or ");
    const drop = () => go({ filters: state.filters.filter((other) => other !== item), page: 0 });
    return chip(item.column, `${item.not ? "is not" : "is"} ${values}`, `${item.column} ${values}`, drop, item.not);
  });
  if (state.from || state.to) {
    const text = `${state.from ? `from ${readable(state.from)}` : ""} ${state.to ? `before ${readable(state.to)}` : ""}`.trim();
    chips.push(chip(table.time, text, table.time, () => go({ from: "", to: "", page: 0 })));
  }
  if (state.where) chips.push(chip("SQL", state.where, "SQL condition", () => go({ where: "", page: 0 })));
  if (state.version) chips.push(chip("version", state.version, "version", () => go({ version: "", page: 0 })));
  $("chips").replaceChildren(...chips);
}

function showSort() {
  const now = order();
  const choices = [["", "", "table order"]];
  if (state.q) choices.push(["_score", "desc", "best match"]);
  for (const column of table.columns.filter((one) => one.sortable)) {
    const [low, high] = column.time ? ["oldest first", "newest first"] : column.number ? ["smallest first", "largest first"] : ["A to Z", "Z to A"];
    choices.push([column.name, "desc", `${column.name}, ${high}`], [column.name, "asc", `${column.name}, ${low}`]);
  }
  $("sort-label").hidden = table.delta;
  $("sort").replaceChildren(...choices.map(([sort, way, text]) => h("option", { value: JSON.stringify([sort, way]), selected: sort === now.sort && (way === now.order || !sort) }, text)));
}

function showColumns() {
  const now = columns();
  const box = (column) => h("label", { title: column.type }, h("input", { type: "checkbox", value: column.name, checked: now.includes(column.name), onchange: chooseColumns }), column.name);
  $("column-list").replaceChildren(...table.columns.map(box), h("button", { type: "button", class: "quiet", onclick: () => go({ columns: null }) }, "Usual columns"));
}

function chooseColumns() {
  const names = [...$("column-list").querySelectorAll("input:checked")].map((box) => box.value);
  if (!names.length) return;
  const wasOpen = $("choose").open;
  go({ columns: names.length === table.columns.length && names.length <= SHOWN_COLUMNS ? null : names });
  $("choose").open = wasOpen;
}

function showDownloads() {
  const link = (format, text) => h("a", { href: address(table.name, "download", { ...params(), ...order(), columns: JSON.stringify(columns()), format }), download: "" }, text);
  $("download-list").replaceChildren(link("csv", "CSV, for spreadsheets"), link("jsonl", "JSON lines"), link("arrow", "Arrow stream, for Python and R"));
}

async function search(signal) {
  const asked = params();
  setBusy(true);
  $("summary").textContent = "Searching";
  $("how").hidden = true;
  $("pages").replaceChildren();
  const rows = ask(table.name, "rows", { ...asked, ...order(), columns: JSON.stringify(columns()), limit: PAGE, offset: PAGE * state.page }, signal);
  const total = table.time && !table.delta ? showChart(asked, signal) : ask(table.name, "count", asked, signal).then((found) => found.total);
  if (!table.time || table.delta) $("chart").hidden = true;
  const facets = showFacets(table, asked, state.filters, signal, toggle);
  total.catch(() => {});
  answer = await rows;
  showRows(answer, table, { ...state, ...order() }, { onSort, onOpen: openRow });
  setBusy(false);
  showHow(answer.found);
  showNotes(answer.found.notes || []);
  $("how").hidden = false;
  showPages();
  summarise(null);
  summarise(await total);
  await facets;
}

async function showChart(asked, signal) {
  $("chart").classList.add("loading");
  const found = await ask(table.name, "histogram", { ...asked, column: table.time }, signal);
  chart.show(found);
  return found.total;
}

function summarise(total) {
  const first = answer.offset + 1;
  const last = answer.offset + answer.rows.length;
  const ms = `${Math.round(answer.found.milliseconds).toLocaleString("en")} ms`;
  if (!answer.rows.length) $("summary").replaceChildren(h("b", {}, "No rows"), ` in ${ms}`);
  else $("summary").replaceChildren(h("b", {}, total === null ? `Rows ${count(first)} to ${count(last)}` : plural(total, "row")), total === null ? "" : `, showing ${count(first)} to ${count(last)}`, ` in ${ms}`);
}

function showNotes(notes) {
  $("notes").hidden = !notes.length;
  $("notes").replaceChildren(...notes.map((text) => h("li", {}, text)));
}

function showPages() {
  const turn = (step) => () => {
    go({ page: state.page + step });
    $("results").focus();
    scrollTo({ top: 0 });
  };
  const buttons = [h("button", { type: "button", disabled: !state.page, onclick: turn(-1) }, "\u2190 Previous"), h("span", { class: "faint" }, `Page ${state.page + 1}`), h("button", { type: "button", disabled: !answer.more, onclick: turn(1) }, "Next \u2192")];
  $("pages").replaceChildren(...(state.page || answer.more ? buttons : []));
}

function complain(error) {
  setBusy(false);
  const place = $("problem");
  const text = error.kind === "where" ? state.where : state.q;
  const at = error.position - 1;
  const pieces = Number.isInteger(at) && text ? [h("pre", {}, text.slice(0, at), h("span", { class: "here" }, text.slice(at, at + 1) || " "), text.slice(at + 1))] : [];
  place.replaceChildren(...pieces, h("span", {}, error.message));
  place.hidden = false;
  $("summary").textContent = "";
  $("rows").replaceChildren(h("div", { class: "nothing" }, h("b", {}, "The question could not be answered"), "The message below the search box says why."));
  $("chart").hidden = true;
  $("chart").classList.remove("loading");
  $("facets").replaceChildren();
  if (error.kind === "where") $("sql").open = true;
  if (state.tab !== "search") $(`view-${state.tab}`).replaceChildren(h("div", { class: "card nothing" }, h("b", {}, "This could not be shown"), error.message));
}

function onSort(name) {
  const now = order();
  if (now.sort !== name) go({ sort: name, order: "desc", page: 0 });
  else if (now.order === "desc") go({ sort: name, order: "asc", page: 0 });
  else go({ sort: "", order: "", page: 0 });
}

function toggle(column, value, excluded) {
  go({ filters: toggled(state.filters, column, value, excluded), page: 0 });
}

async function openRow(at, row) {
  const onFilter = (column, value, not) => {
    $("row").close();
    toggle(column, value, not);
  };
  if (at < 0) {
    showRow(answer, row, "New row", { onFilter });
    return;
  }
  const place = answer.offset + at;
  const move = (to) => (to >= 0 && to < answer.rows.length ? () => openRow(to, answer.rows[to]) : null);
  try {
    // The columns that are not shown are asked for when they are looked at.
    const whole = await ask(table.name, "rows", { ...params(), ...order(), version: answer.version, limit: 1, offset: place });
    if (whole.rows.length) showRow(whole, whole.rows[0], `Row ${count(place + 1)}`, { onFilter, moves: [move(at - 1), move(at + 1)] });
  } catch (error) {
    complain(error);
  }
}

function onArrived(event) {
  $("version").textContent = `version ${event.version}`;
  if (event.rows.length && !addRows(answer, event.rows, table, openRow, 500)) render();
}

function onTailChange(text, on) {
  $("tail").setAttribute("aria-pressed", String(on));
  $("tail").textContent = on ? "Live" : "Live tail";
  if (text) $("summary").textContent = text;
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if ($("go").classList.contains("busy") && event.submitter === $("go")) {
    giveUp();
    $("summary").textContent = "Cancelled";
    return;
  }
  const changed = { q: $("query").value.trim(), where: $("where").value.trim(), page: 0 };
  if (changed.q !== state.q && state.sort === "_score" && !changed.q) changed.sort = null;
  go(changed);
});
const rangeChanged = () => {
  const read = (id) => ($(id).value ? iso(instant($(id).value)) : "");
  go({ from: read("from"), to: read("to"), page: 0 });
};
$("from").addEventListener("change", rangeChanged);
$("to").addEventListener("change", rangeChanged);
$("range-clear").addEventListener("click", () => go({ from: "", to: "", page: 0 }));
$("table").addEventListener("change", () => go({ table: $("table").value, q: "", where: "", filters: [], from: "", to: "", sort: null, order: "", columns: null, version: "", page: 0 }));
$("sort").addEventListener("change", () => {
  const [sort, way] = JSON.parse($("sort").value);
  go({ sort, order: way, page: 0 });
});
$("tabs").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go({ tab: link.dataset.tab, page: 0 });
});
$("help-open").addEventListener("click", () => showHelp(table, tryQuery));
$("tail").addEventListener("click", () => (tail.on ? tail.stop() : tail.start(table.name, { ...params(), columns: JSON.stringify(columns()) })));
$("link").addEventListener("click", async () => {
  await navigator.clipboard?.writeText(location.href);
  $("link").textContent = "Copied";
  setTimeout(() => ($("link").textContent = "Copy link"), 1500);
});

function tryQuery(text) {
  $("query").value = text;
  $("query").focus();
}

document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || document.querySelector("dialog[open]");
  const popover = event.key === "Escape" ? document.querySelector("details[open] > .popover") : null;
  if (popover) {
    popover.parentElement.open = false;
    popover.parentElement.querySelector("summary").focus();
  } else if (event.key === "Escape" && running && $("go").classList.contains("busy")) {
    giveUp();
    $("summary").textContent = "Cancelled";
  } else if (typing || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  } else if (event.key === "/") {
    event.preventDefault();
    $("query").focus();
    $("query").select();
  } else if (event.key === "?") {
    event.preventDefault();
    showHelp(table, tryQuery);
  }
});
document.addEventListener("click", (event) => {
  for (const open of document.querySelectorAll("#sql[open], #choose[open], #download[open]")) {
    if (!open.contains(event.target)) open.open = false;
  }
});
addEventListener("popstate", () => {
  state = readState();
  render();
});

try {
  tables = (await ask(null, "", { table: state.table, version: state.version })).tables;
  for (const one of tables) one.pinned = Boolean(state.version) && one.name === state.table;
  await render();
} catch (error) {
  $("view-search").hidden = false;
  $("problem").hidden = false;
  $("problem").textContent = error.message;
}
