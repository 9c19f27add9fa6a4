// The cluster as it is (asked for when something happens, and now and then for ages and memory) and what befell it (a stream).
import { follow, get } from '../api.js';
import { makeStore } from '../store.js';
import { addSample } from './throughput.js';

const EVERY = 3000;
const SOON = 250;
const KEPT_EVENTS = 10_000;

export function watchCluster() {
  const store = makeStore({ cluster: null, events: [], samples: [], isLive: false, isComplete: false, failure: null, at: null });
  const abort = new AbortController();
  const { signal } = abort;
  let timer;
  let waiting = [];

  const look = async () => {
    clearTimeout(timer);
    try {
      if (!document.hidden) {
        const [cluster, { jobs }] = await Promise.all([get('/v1/cluster', { signal }), get('/v1/jobs', { signal })]);
        store.set(({ samples }) => ({ cluster, at: Date.now(), failure: null, samples: addSample(samples, Date.now(), jobs) }));
      }
    } catch (error) {
      if (signal.aborted) return;
      store.set({ failure: error.message });
    }
    timer = setTimeout(look, EVERY);
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(look, SOON);
  };
  // Ten thousand events come at once: they are taken in together.
  const take = (event) => {
    waiting.push(event);
    if (waiting.length > 1) return;
    setTimeout(() => {
      const news = waiting;
      waiting = [];
      store.set(({ events }) => ({ events: [...events, ...news].slice(-KEPT_EVENTS) }));
      if (store.get().isComplete) soon();
    }, 50);
  };

  look();
  follow('/v1/cluster/events', {
    signal,
    onLink: (isLive) => store.set({ isLive }),
    onEvent(event) {
      if (event.comment === 'all') store.set({ isComplete: true });
      else if (event.data) take({ id: event.id, ...event.data });
      return false;
    },
  }).catch((error) => !signal.aborted && store.set({ failure: error.message }));
  return {
    store,
    close() {
      abort.abort();
      clearTimeout(timer);
    },
  };
}
