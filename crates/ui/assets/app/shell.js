// The frame: names of the views, the state of the connection, light or dark, the token.
import { get, onReach, Problem, setToken } from './api.js';
import { AskView } from './ask/ask_view.js';
import { ClusterView } from './cluster/cluster_view.js';
import { isLocal, version } from './host.js';
import { JobView } from './job/job_view.js';
import { JobsView } from './job/jobs_view.js';
import { addressOf, location } from './location.js';
import { html, useEffect, useRef, useState } from './markup.js';
import { clock } from './quantities.js';
import { useStore } from './store.js';
import { theme, toggleTheme } from './theme.js';

const VIEWS = [
  ['ask', 'Ask'],
  ['jobs', 'Jobs'],
  ['cluster', isLocal ? 'Process' : 'Cluster'],
];

export function Shell() {
  const route = useStore(location);
  const cutOffSince = useCutOff();
  const access = useAccess();
  useEffect(() => {
    const name = VIEWS.find(([view]) => view === route.view)?.[1] ?? route.id;
    document.title = name ? `${name} · tenaz` : 'tenaz';
  }, [route.view, route.id]);
  return html`<div class="shell">
    <header class="bar">
      <a class="name" href=${addressOf('ask')}>tenaz</a>
      <nav aria-label="Views">
        ${VIEWS.map(([view, name]) => {
          const isHere = route.view === view || (view === 'jobs' && route.view === 'job');
          return html`<a key=${view} href=${addressOf(view)} aria-current=${isHere ? 'page' : undefined}>${name}</a>`;
        })}
      </nav>
      <span class="space"></span>
      <${ThemeButton} />
    </header>
    <div role="status" aria-live="polite">
      ${cutOffSince &&
      html`<p class="notice bad" id="cut-off">
        Cut off since ${clock(cutOffSince)}: the server does not answer. What is shown is from before; the page goes on by itself when it
        is back.
      </p>`}
    </div>
    <main tabindex="-1">${access.refused ? html`<${TokenForm} text=${access.refused} enter=${access.enter} />` : html`<${View} key=${access.round} route=${route} />`}</main>
  </div>`;
}

function View({ route }) {
  switch (route.view) {
    case 'jobs':
      return html`<${JobsView} />`;
    case 'job':
      return html`<${JobView} key=${route.id} id=${route.id} />`;
    case 'cluster':
      return html`<${ClusterView} />`;
    case 'ask':
      return html`<${AskView} />`;
    default:
      return html`<p class="empty"><strong>There is no such view</strong><a href=${addressOf('ask')}>Ask a question</a></p>`;
  }
}

function ThemeButton() {
  const { dark } = useStore(theme);
  return html`<button class="plain" onClick=${toggleTheme} aria-label=${dark ? 'Light colours' : 'Dark colours'} title=${`tenaz ${version}`}>
    ${dark ? '☀' : '☾'}
  </button>`;
}

function useCutOff() {
  const [since, setSince] = useState(null);
  useEffect(() => onReach((isThere) => setSince(isThere ? null : Date.now())), []);
  return since;
}

// Whether the server wants a token that we do not have.
function useAccess() {
  const [state, setState] = useState({ refused: null, round: 0 });
  const ask = async () => {
    try {
      await get('/v1/jobs');
      // What was refused before is asked for again.
      setState((before) => (before.refused === null ? before : { refused: null, round: before.round + 1 }));
    } catch (error) {
      if (error instanceof Problem && error.status === 401) setState(({ round }) => ({ refused: error.message, round }));
    }
  };
  useEffect(() => void ask(), []);
  const enter = (token) => {
    setToken(token);
    return ask();
  };
  return { ...state, enter };
}

function TokenForm({ text, enter }) {
  const field = useRef(null);
  useEffect(() => field.current?.focus(), []);
  const submit = (event) => {
    event.preventDefault();
    enter(field.current.value);
    field.current.value = '';
  };
  return html`<form class="empty" onSubmit=${submit}>
    <strong>A token is needed</strong>
    <p>${text}</p>
    <p>${isLocal ? 'Open the address that tenaz ui has printed: it holds the token.' : 'It stays in the memory of this page only.'}</p>
    <p><input ref=${field} type="password" aria-label="Token" autocomplete="off" /> <button class="main">Enter</button></p>
  </form>`;
}
