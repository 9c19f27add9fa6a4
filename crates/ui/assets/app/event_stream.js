// Server-sent events from pieces of text. (EventSource cannot send a token, so streams are read with fetch.)

export class EventStream {
  #rest = '';
  #event = {};

  // The complete events in what has come so far: {event, id, data}; a comment is {comment}.
  push(text) {
    const events = [];
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop();
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line === '') {
        if (this.#event.data !== undefined) events.push({ event: 'message', ...this.#event });
        this.#event = {};
      } else if (line.startsWith(':')) {
        events.push({ comment: line.slice(1).trim() });
      } else {
        this.#take(line);
      }
    }
    return events;
  }

  #take(line) {
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'event' || name === 'id') this.#event[name] = value;
    if (name === 'data') this.#event.data = this.#event.data === undefined ? value : `${this.#event.data}\n${value}`;
  }
}

// How long to wait before the next attempt, in milliseconds: a little at first, at most five seconds.
export function pauseBefore(attempt) {
  return Math.min(5000, 250 * 2 ** Math.min(attempt, 10));
}
