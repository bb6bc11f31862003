// Asks the daemon.
//
// In: a route under api/v1/ and parameters. Out: JSON, or an `ApiError` with the daemon's own message. Addresses
// are relative, so that the page works behind any path. A browser that `emberscope url` logged in has a cookie that no
// script sees. A token, where one is given instead, is kept for this tab only and sent in a header; it is in no address.

const TOKEN = 'emberscope-token';

/** What the daemon refused, or that it did not answer. */
export class ApiError extends Error {
  constructor(status, error) {
    super(error.message ?? `The daemon answered ${status}.`);
    this.status = status;
    this.code = error.code ?? 'unknown';
    this.parameter = error.parameter ?? null;
    this.choices = error.choices ?? [];
  }
}

function storage() {
  try { return globalThis.sessionStorage; } catch { return undefined; }
}

/** Keeps a token for this tab; an empty one is forgotten. */
export function setToken(token) {
  if (token) storage()?.setItem(TOKEN, token);
  else storage()?.removeItem(TOKEN);
}

/** The address of a route with parameters: pairs, or an object; what is empty or undefined is left out. */
export function address(route, parameters = [], base = document.baseURI) {
  const url = new URL(`api/v1/${route}`, base.replace(/[?#].*$/, ''));
  const pairs = Array.isArray(parameters) ? parameters : Object.entries(parameters);
  for (const [name, value] of pairs) {
    if (value !== undefined && value !== null && value !== '') url.searchParams.append(name, value);
  }
  return url;
}

/** Asks; the answer's JSON. */
export async function get(route, parameters, { signal } = {}) {
  const headers = {};
  const token = storage()?.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(address(route, parameters), { headers, signal, cache: 'no-store', referrerPolicy: 'no-referrer' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    const message = 'The daemon does not answer. Is it running? (systemctl status emberscope)';
    throw new ApiError(0, { code: 'unreachable', message });
  }
  let body;
  try {
    body = await response.json();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(response.status, { code: 'bad_answer', message: `The answer to ${route} (${response.status}) is not JSON: is there a proxy in between?` });
  }
  if (!response.ok) throw new ApiError(response.status, body.error ?? {});
  return body;
}
