// The other tabs: what the table is, its files, its versions.
import { ask } from "./api.js";
import { $, bytes, count, h, plural, shown } from "./dom.js";
import { addressOf } from "./state.js";
import { readable } from "./times.js";

function grid(heads, rows) {
  const cell = (value, at) => h("td", { class: heads[at].kind || "", "data-name": heads[at].name }, value);
  return h("table", {}, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col", class: head.kind || "" }, head.name)))), h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell)))));
}

const panel = (title, ...body) => h("section", { class: "card panel" }, h("h2", {}, title), body);

const meter = ([label, value, text], most) => h("div", { class: "meter" }, h("span", { title: label }, label), h("span", { class: "track" }, h("i", { style: { width: `${(100 * value) / most}%` } })), h("span", {}, text));

const meters = (bars) => bars.map((bar) => meter(bar, Math.max(1, ...bars.map((other) => other[1]))));

export async function showAbout(state, signal) {
  const found = await ask(state.table, "about", { version: state.version }, signal);
  const tile = (name, value, note) => h("div", { class: "card tile" }, h("span", { class: "faint" }, name), h("b", {}, value), h("span", { class: "faint" }, note));
  const share = found.bytes && !found.delta ? `${Math.round((100 * found.index_bytes) / found.bytes)} % of it index` : "";
  const marks = (column) => [column.index ? `searched as ${column.index}` : "", column.partition ? "partition" : ""].filter(Boolean).join(", ");
  const advice = found.advice.length ? found.advice.map((item) => h("div", {}, h("p", {}, item.text), item.effect ? h("p", { class: "faint" }, item.effect) : "", item.statement ? h("pre", {}, item.statement) : "")) : h("p", { class: "faint" }, found.delta ? "A Delta table is maintained by the system that writes it." : "Nothing: the table is in good order.");
  const facts = { Address: found.uri, "Table id": found.table_id, Protocol: found.protocol, "Partitioned by": found.partition_columns.join(", ") || "nothing", "Versions that can be read": found.versions_available, "Newest checkpoint": found.checkpoint_version ?? "none", ...found.properties };
  $("view-about").replaceChildren(
    h("div", { class: "tiles" }, tile("Rows", count(found.rows), `in ${plural(found.columns.length, "column")}`), tile("Size", bytes(found.bytes), share), tile(found.delta ? "Files" : "Splits", count(found.files), found.files ? `${bytes(found.bytes / found.files)} on average` : ""), tile("Log", bytes(found.log_bytes), plural(found.log_files, "file"))),
    panel("What to do", advice),
    panel("Columns", grid([{ name: "Column" }, { name: "Type" }, { name: "" }], found.columns.map((column) => [h("code", {}, column.name), column.type, marks(column)]))),
    found.partitions.length ? panel("Partitions by size", meters(found.partitions)) : "",
    found.file_sizes.length ? panel("Files by size", meters(found.file_sizes)) : "",
    panel("Log and properties", h("dl", { class: "facts" }, Object.entries(facts).flatMap(([name, value]) => [h("dt", {}, name), h("dd", { class: "mono" }, String(value ?? ""))]))),
  );
}

export async function showFiles(state, params, signal, turn) {
  const found = await ask(state.table, "files", { ...params, q: "", limit: 50, offset: 50 * state.page }, signal);
  const few = found.total < found.considered ? `${count(found.total)} of ${plural(found.considered, "file")} can contain rows for the filter` : plural(found.total, "file");
  const partition = (values) => (values ? Object.entries(values).map(([name, value]) => `${name}=${value}`).join(", ") : "");
  const parted = found.files.some((file) => partition(file.partition_values));
  const heads = [{ name: "Path", kind: "long" }, ...(parted ? [{ name: "Partition" }] : []), { name: "Rows", kind: "number" }, { name: "Size", kind: "number" }];
  const rows = found.files.map((file) => [file.path, ...(parted ? [partition(file.partition_values)] : []), count(file.num_records), bytes(file.size)]);
  $("view-files").replaceChildren(
    panel(`${few}, ${bytes(found.bytes)}, largest first`, grid(heads, rows)),
    h("div", { class: "row" }, state.page ? h("button", { type: "button", onclick: () => turn(-1) }, "\u2190 Previous") : "", 50 * (state.page + 1) < found.total ? h("button", { type: "button", onclick: () => turn(1) }, "Next \u2192") : ""),
  );
}

export async function showVersions(state, signal) {
  const found = await ask(state.table, "versions", {}, signal);
  const link = (version) => h("a", { href: addressOf({ ...state, tab: "search", page: 0, version: version === found.version ? "" : String(version) }) }, String(version));
  const heads = [{ name: "Version", kind: "number" }, { name: "Time (UTC)", kind: "time" }, { name: "Operation", kind: "short" }, { name: "Change", kind: "long" }];
  const rows = found.versions.map((item) => [link(item.version), item.timestamp ? readable(item.timestamp) : shown(null), item.operation || "", item.change]);
  $("view-versions").replaceChildren(panel("Versions, newest first. Click a number to see the table as it was then.", grid(heads, rows)));
}
