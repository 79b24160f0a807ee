// Live tail: the server says what was appended, this passes it on until it is stopped.
import { address } from "./api.js";

export class Tail {
  constructor(onRows, onChange) {
    this.onRows = onRows;
    this.onChange = onChange;
    this.source = null;
    this.failed = null;
  }

  get on() {
    return this.source !== null;
  }

  start(table, params) {
    this.stop();
    const place = address(table, "tail", params);
    // After a failure the same tail goes on behind the last rows that came.
    const after = this.failed?.place === place ? { after: this.failed.after } : {};
    this.source = new EventSource(address(table, "tail", { ...params, ...after }));
    this.source.onmessage = (event) => this.onRows(JSON.parse(event.data));
    this.source.addEventListener("waiting", (event) => this.onChange(JSON.parse(event.data).message, true));
    this.source.addEventListener("failed", (event) => {
      this.stop();
      this.failed = { place, after: event.lastEventId };
      this.onChange(JSON.parse(event.data).message, false);
    });
    this.source.onerror = () => {
      if (this.source?.readyState === EventSource.CLOSED) this.stop();
    };
    this.onChange("", true);
  }

  stop() {
    if (!this.source) return;
    this.source.close();
    this.source = null;
    this.onChange("", false);
  }
}
