// The HTTP API. The token stays in this module's memory.
import { EventStream, pauseBefore } from './event_stream.js';

let token = '';

export function setToken(value) {
  token = value;
}

// Gives the header with the token to whoever makes a request by itself.
export function authorize(set) {
  if (token) set('authorization', `Bearer ${token}`);
}

// A refused request, in the words of its problem document.
export class Problem extends Error {
  constructor(status, document) {
    super(document.detail ?? document.title ?? `HTTP ${status}`);
    this.status = status;
    this.code = document.code ?? '';
    this.document = document;
  }
}

// No answer came: the server is gone, or the network is.
export class CutOff extends Error {}

export async function request(path, { method = 'GET', body, headers = {}, signal } = {}) {
  const all = { ...headers };
  authorize((name, value) => (all[name] = value));
  let response;
  try {
    response = await fetch(path, { method, body, headers: all, signal, cache: 'no-store', credentials: 'omit', redirect: 'error' });
  } catch (error) {
    if (signal?.aborted) throw error;
    reach(false);
    throw new CutOff('the server does not answer');
  }
  reach(true);
  if (response.ok) return response;
  let document = {};
  try {
    document = await response.json();
  } catch {
    // An answer of something that stands in between.
  }
  throw new Problem(response.status, document);
}

export async function get(path, options) {
  return (await request(path, options)).json();
}

export async function post(path, body, options = {}) {
  const headers = { 'content-type': 'application/json', ...options.headers };
  return (await request(path, { ...options, method: 'POST', headers, body: JSON.stringify(body ?? {}) })).json();
}

// The text of a response, piece by piece.
export async function* pieces(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Follows a stream of events for as long as it is wanted, over cut connections. `onEvent(event)` takes {event, id, data} and
// returns true after the last one; `onLink(isLive)` is told when the stream is cut and when it goes on.
export async function follow(path, { onEvent, onLink, signal }) {
  let last;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      const response = await request(path, { signal, headers: last === undefined ? {} : { 'last-event-id': last } });
      const stream = new EventStream();
      onLink(true);
      for await (const text of pieces(response)) {
        attempt = 0;
        for (const event of stream.push(text)) {
          if (event.id !== undefined) last = event.id;
          if (onEvent(event.data === undefined ? event : { ...event, data: JSON.parse(event.data) })) return;
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
      if (!(error instanceof Problem)) reach(false);
    }
    if (signal.aborted) return;
    onLink(false);
    await new Promise((resume) => setTimeout(resume, pauseBefore(attempt)));
  }
}

// Whether the server is there, for those who want to know.
const watchers = new Set();
let reachable = true;

function reach(isThere) {
  if (reachable === isThere) return;
  reachable = isThere;
  watchers.forEach((watch) => watch(isThere));
}

export function onReach(watch) {
  watchers.add(watch);
  return () => watchers.delete(watch);
}
