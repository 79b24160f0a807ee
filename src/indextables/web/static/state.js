// What the page shows is its address: reading and writing it is all there is to permalinks and to going back.
const EMPTY = {
  tab: "search", table: "", q: "", where: "", filters: [], from: "", to: "", sort: null, order: "", columns: null,
  version: "", page: 0,
};

export function readState() {
  const given = new URLSearchParams(location.search);
  const state = { ...EMPTY, filters: [] };
  for (const name of ["tab", "table", "q", "where", "from", "to", "order", "version"]) {
    state[name] = given.get(name) || EMPTY[name];
  }
  if (given.has("sort")) state.sort = given.get("sort");
  state.page = Math.max(0, Number.parseInt(given.get("page") || "0", 10) || 0);
  state.filters = listed(given.get("filters")).filter((item) => item && typeof item.column === "string" && Array.isArray(item.values));
  const columns = listed(given.get("columns")).filter((name) => typeof name === "string");
  state.columns = columns.length ? columns : null;
  return state;
}

export function writeState(state, replace = false) {
  const url = addressOf(state);
  if (url === `${location.pathname}${location.search}`) return;
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
}

export function addressOf(state) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (name === "filters" || name === "columns") {
      if (value && value.length) query.set(name, JSON.stringify(value));
    } else if (name === "sort") {
      if (value !== null) query.set(name, value);
    } else if (value !== EMPTY[name]) {
      query.set(name, value);
    }
  }
  const text = query.toString();
  return `/${text ? `?${text}` : ""}`;
}

function listed(text) {
  try {
    const found = JSON.parse(text || "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

// Choices of values: a value is chosen, excluded, or neither; the values of one column are alternatives.
export function toggled(filters, column, value, excluded) {
  const rest = filters.map((item) => ({ ...item, values: [...item.values] }));
  const drop = (item) => item && (item.values = item.values.filter((other) => other !== value));
  const same = rest.find((item) => item.column === column && Boolean(item.not) === excluded);
  const other = rest.find((item) => item.column === column && Boolean(item.not) !== excluded);
  drop(other);
  if (same && same.values.includes(value)) drop(same);
  else if (same) same.values.push(value);
  else rest.push({ column, values: [value], ...(excluded ? { not: true } : {}) });
  return rest.filter((item) => item.values.length);
}

export function chosen(filters, column, value) {
  for (const item of filters) {
    if (item.column === column && item.values.includes(value)) return item.not ? "off" : "on";
  }
  return "";
}
