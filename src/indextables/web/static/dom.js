// Elements from JavaScript. Text is always set as text, so a value of a table is never read as HTML.
const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function s(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(value) {
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value.toLocaleString("en", { maximumFractionDigits: unit ? 1 : 0 })} ${UNITS[unit]}`;
}

export const count = (value) => (value === null || value === undefined ? "?" : value.toLocaleString("en"));

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

// Text with some parts marked: pieces are [text, isMarked].
export function marked(pieces) {
  return pieces.map(([text, on]) => (on ? h("mark", {}, text) : text));
}

// A value of a cell as text; what is not there is said, so that it is not taken for an empty text.
export function shown(value, digits = 17) {
  if (value === null || value === undefined) return h("span", { class: "none" }, "null");
  if (value === "") return h("span", { class: "none" }, "empty");
  if (typeof value === "object") return JSON.stringify(value);
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(digits)));
  return String(value);
}
