// Times are shown in UTC, as the table has them. A text without an offset means UTC too.
export function instant(text) {
  if (!text) return Number.NaN;
  const plain = /(Z|[+-]\d\d:?\d\d)$/.test(text) || /^\d{4}-\d\d-\d\d$/.test(text);
  return Date.parse(plain ? text : `${text}Z`);
}

export const iso = (ms) => new Date(ms).toISOString().replace(".000Z", "Z");

export const forInput = (text) => (text ? iso(instant(text)).slice(0, 19) : "");

// A timestamp as people read it: no T, no offset, no fraction that is zero.
export function readable(text) {
  return String(text).replace("T", " ").replace(/(\.\d*?)0+(?=[Z+-]|$)/, "$1").replace(/\.(?=[Z+-]|$)/, "").replace(/(\+00:00|Z)$/, "");
}

const SECOND = 1000;
const DAY = 86400 * SECOND;
const STEPS = [0.001, 0.01, 0.1, 1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400].map((seconds) => seconds * SECOND);
const MONTHS = [1, 3, 6, 12, 24, 60, 120];
const named = (ms, parts) => new Date(ms).toLocaleString("en", { ...parts, timeZone: "UTC" });

// Round times inside a range, at most so many, with what to write at each.
export function ticks(start, end, most) {
  const step = STEPS.find((length) => (end - start) / length <= most);
  if (step === undefined) return months(start, end, most);
  const found = [];
  for (let at = Math.ceil(start / step) * step; at <= end; at += step) {
    const clock = new Date(at).toISOString();
    const text = at % DAY === 0 ? named(at, { month: "short", day: "numeric" }) : step >= 60 * SECOND ? clock.slice(11, 16) : clock.slice(11, step >= SECOND ? 19 : 23);
    found.push([at, text]);
  }
  return found;
}

function months(start, end, most) {
  const step = MONTHS.find((length) => (end - start) / (length * 30 * DAY) <= most) || MONTHS.at(-1);
  const first = new Date(start);
  const found = [];
  for (let month = Math.ceil((first.getUTCFullYear() * 12 + first.getUTCMonth() + 1) / step) * step; ; month += step) {
    const at = Date.UTC(Math.floor(month / 12), month % 12);
    if (at > end || found.length > most) return found;
    found.push([at, named(at, step >= 12 ? { year: "numeric" } : { month: "short", year: "numeric" })]);
  }
}
