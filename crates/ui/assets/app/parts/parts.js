// Small parts that every view uses.
import { html } from '../markup.js';

// Signs beside the colours: no state is told by its colour alone.
const STATES = {
  uploading: ['↑', 'accent', 'uploading'],
  processing: ['▸', 'accent', 'processing'],
  done: ['✓', 'good', 'done'],
  failed: ['✗', 'bad', 'failed'],
  cancelled: ['■', 'quiet', 'cancelled'],
  expired: ['□', 'quiet', 'expired'],
  open: ['▸', 'quiet', 'open'],
  final: ['✓', 'good', 'final'],
  up: ['●', 'good', 'up'],
  starting: ['◐', 'accent', 'starting'],
  leaving: ['◑', 'quiet', 'leaving'],
  stands_back: ['◌', 'warn', 'stands back'],
  silent: ['?', 'warn', 'silent'],
  dead: ['✗', 'bad', 'dead'],
  given_up: ['✗', 'bad', 'given up'],
  unknown: ['·', 'quiet', 'unknown'],
};

export function State({ state }) {
  const [sign, tone, text] = STATES[state] ?? ['·', 'quiet', state];
  return html`<span class=${`state ${tone}`} data-sign=${sign}>${text}</span>`;
}

export function Meter({ share, label }) {
  const known = share !== null && share !== undefined;
  const value = known ? Math.round(share * 100) : undefined;
  return html`<div class=${known ? 'meter' : 'meter unknown'} role="progressbar" aria-label=${label} aria-valuenow=${value} aria-valuemin="0" aria-valuemax="100">
    <i style=${known ? { width: `${share * 100}%` } : {}}></i>
  </div>`;
}

export function Panel({ title, tools, children, className = '', id }) {
  return html`<section class=${`panel ${className}`} id=${id} aria-label=${title}>
    <header><h2>${title}</h2>${tools}</header>
    ${children}
  </section>`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><strong>${title}</strong>${children}</div>`;
}

export function Failure({ text }) {
  return html`<div class="failure" role="alert">${text}</div>`;
}

// Short forms of fingerprints, the whole one on demand.
export function Print({ value }) {
  return value ? html`<span class="print" title=${value}>${value.slice(0, 12)}</span>` : html`<span class="quiet">–</span>`;
}

// Arrow keys move between tabs.
export function Tabs({ label, tabs, chosen, choose }) {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const place = tabs.findIndex(({ id }) => id === chosen);
    const next = tabs[(place + step + tabs.length) % tabs.length];
    choose(next.id);
    event.currentTarget.querySelector(`[data-tab="${CSS.escape(next.id)}"]`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
    ${tabs.map(
      ({ id, name, sign }) => html`<button
        key=${id}
        role="tab"
        data-tab=${id}
        aria-selected=${id === chosen ? 'true' : 'false'}
        tabindex=${id === chosen ? 0 : -1}
        onClick=${() => choose(id)}
      >
        ${name}${sign && html` ${sign}`}
      </button>`,
    )}
  </div>`;
}
