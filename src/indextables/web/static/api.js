// Questions to the server. Each can be given up through an AbortSignal; the server then stops working on it.
export class AskError extends Error {
  constructor(status, said) {
    super(said.message || `the server answered ${status}`);
    this.status = status;
    this.kind = said.kind;
    this.position = said.position;
    this.end = said.end;
  }
}

export function address(table, what, params) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params || {})) {
    if (value !== undefined && value !== null && value !== "") query.set(name, value);
  }
  return `/api/tables${table === null ? "" : `/${encodeURIComponent(table)}/${what}`}?${query}`;
}

export async function ask(table, what, params, signal) {
  const answer = await fetch(address(table, what, params), { signal, headers: { accept: "application/json" } });
  let body;
  try {
    body = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    body = { error: { message: answer.status === 401 ? "The token is gone: open the printed address again." : "" } };
  }
  if (!answer.ok) throw new AskError(answer.status, body.error || {});
  return body;
}
