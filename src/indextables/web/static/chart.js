// The histogram: bars over time, a range of them to choose with the pointer or the keyboard.
import { $, count, h, plural, s } from "./dom.js";
import { instant, iso, readable, ticks } from "./times.js";

const HEIGHT = 104;
const FOOT = 18;

export class Chart {
  constructor(choose) {
    this.choose = choose;
    this.svg = $("bars");
    this.data = null;
    this.cursor = null;
    this.anchor = null;
    this.svg.addEventListener("pointerdown", (event) => this.begin(event));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.data && this.draw()).observe(this.svg);
  }

  show(data) {
    this.data = data;
    this.cursor = null;
    this.anchor = null;
    $("chart").classList.remove("loading");
    $("chart").hidden = !data.bars.length;
    if (!data.bars.length) return;
    this.step = data.seconds * 1000;
    this.bars = data.bars.map(([start, n]) => ({ at: instant(start), n }));
    const last = this.bars.length - 1;
    for (let i = 0; i < last; i += 1) this.bars[i].end = Math.min(this.bars[i].at + this.step, this.bars[i + 1].at);
    this.bars[last].end = this.bars[last].at + this.step;
    this.start = Math.min(instant(data.start), this.bars[0].at);
    this.end = Math.max(instant(data.end), this.bars[last].end);
    const span = `${readable(iso(this.start))} to ${readable(iso(this.end))}`;
    $("chart-caption").replaceChildren(h("span", {}, `${plural(data.total, "row")} by ${data.column}, each bar ${words(data.interval)}`), h("span", {}, `${span} UTC`));
    this.draw();
  }

  x(ms) {
    return ((ms - this.start) / (this.end - this.start)) * this.width;
  }

  draw() {
    this.width = this.svg.clientWidth || 600;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    const most = Math.max(...this.bars.map((bar) => bar.n));
    const tall = HEIGHT - FOOT - 6;
    const drawn = [s("line", { x1: 0, x2: this.width, y1: HEIGHT - FOOT + 0.5, y2: HEIGHT - FOOT + 0.5 })];
    this.bars.forEach((bar, i) => {
      const left = this.x(bar.at);
      const wide = Math.max(1, this.x(bar.end) - left);
      const high = Math.max(1.5, (bar.n / most) * tall);
      bar.node = s("rect", { class: "bar", x: left + 0.5, width: Math.max(1, wide - 1.5), y: HEIGHT - FOOT - high, height: high, rx: Math.min(2, wide / 4) });
      const hit = s("rect", { class: "hit", x: left, width: wide, y: 0, height: HEIGHT - FOOT, "data-at": i }, s("title", {}, this.told(bar)));
      drawn.push(bar.node, hit);
    });
    drawn.push(...this.ticks(), s("text", { x: 2, y: 10 }, count(most)));
    this.brush = s("rect", { class: "brush", y: 0, height: HEIGHT - FOOT, x: 0, width: 0, visibility: "hidden" });
    this.svg.replaceChildren(...drawn, this.brush);
  }

  ticks() {
    const found = [];
    for (const [at, text] of ticks(this.start, this.end, Math.max(2, Math.floor(this.width / 90)))) {
      const x = this.x(at);
      found.push(s("line", { x1: x, x2: x, y1: HEIGHT - FOOT, y2: HEIGHT - FOOT + 4 }));
      if (x < this.width - 44) found.push(s("text", { x: x + 3, y: HEIGHT - 4 }, text));
    }
    return found;
  }

  told(bar) {
    return `${readable(iso(bar.at))}: ${plural(bar.n, "row")}`;
  }

  place(event) {
    const box = this.svg.getBoundingClientRect();
    const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    return this.start + part * (this.end - this.start);
  }

  // The range covers whole bars: what is counted in the picture is what the search then finds.
  covered(one, other) {
    const low = Math.min(one, other);
    const high = Math.max(one, other);
    const base = this.bars[0].at;
    return [base + Math.floor((low - base) / this.step) * this.step, base + Math.ceil((high - base) / this.step) * this.step];
  }

  paint(low, high) {
    this.brush.setAttribute("x", this.x(low));
    this.brush.setAttribute("width", Math.max(1, this.x(high) - this.x(low)));
    this.brush.setAttribute("visibility", "visible");
  }

  begin(event) {
    if (!this.data || event.button !== 0) return;
    const first = this.place(event);
    this.svg.setPointerCapture(event.pointerId);
    const move = (now) => this.paint(...this.covered(first, this.place(now)));
    const done = (now) => {
      this.svg.removeEventListener("pointermove", move);
      this.svg.removeEventListener("pointerup", done);
      this.svg.removeEventListener("pointercancel", stop);
      this.choose(...this.covered(first, this.place(now) + 1).map(iso));
    };
    const stop = () => {
      this.svg.removeEventListener("pointermove", move);
      this.svg.removeEventListener("pointerup", done);
      this.brush.setAttribute("visibility", "hidden");
    };
    this.svg.addEventListener("pointermove", move);
    this.svg.addEventListener("pointerup", done);
    this.svg.addEventListener("pointercancel", stop, { once: true });
  }

  key(event) {
    if (!this.data) return;
    const last = this.bars.length - 1;
    const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -last, End: last };
    if (event.key in moves) {
      event.preventDefault();
      const next = this.cursor === null ? (event.key === "End" ? last : 0) : this.cursor + moves[event.key];
      if (!event.shiftKey) this.anchor = null;
      else if (this.anchor === null) this.anchor = this.cursor ?? 0;
      this.cursor = Math.min(last, Math.max(0, next));
      this.focusBar();
    } else if (event.key === "Enter" && this.cursor !== null) {
      const [low, high] = this.chosenBars();
      this.choose(iso(this.bars[low].at), iso(this.bars[high].end));
    } else if (event.key === "Escape") {
      this.cursor = this.anchor = null;
      this.draw();
    }
  }

  chosenBars() {
    const other = this.anchor ?? this.cursor;
    return [Math.min(this.cursor, other), Math.max(this.cursor, other)];
  }

  focusBar() {
    const [low, high] = this.chosenBars();
    this.bars.forEach((bar, i) => bar.node.classList.toggle("on", i >= low && i <= high));
    this.paint(this.bars[low].at, this.bars[high].end);
    const rows = this.bars.slice(low, high + 1).reduce((sum, bar) => sum + bar.n, 0);
    $("chart-now").textContent = low === high ? this.told(this.bars[low]) : `${readable(iso(this.bars[low].at))} to ${readable(iso(this.bars[high].end))}: ${plural(rows, "row")}`;
  }
}

const UNITS = { ms: "millisecond", s: "second", m: "minute", h: "hour", d: "day", w: "week", mon: "month", y: "year" };

function words(interval) {
  const [, n, unit] = /^(\d+)(\w+)$/.exec(interval);
  return n === "1" ? `1 ${UNITS[unit]}` : `${n} ${UNITS[unit]}s`;
}
