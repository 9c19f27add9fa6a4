// A job as it goes on: what it was when we first looked, and what its events have made of it since.
import { follow, get } from '../api.js';
import { makeStore } from '../store.js';
import { applyEvent, ENDED } from './job_events.js';

const KEPT_EVENTS = 200;

export function watchJob(id) {
  const store = makeStore({ job: null, events: [], isLive: false, failure: null });
  const abort = new AbortController();
  watch(id, store, abort.signal);
  return { id, store, close: () => abort.abort() };
}

async function watch(id, store, signal) {
  const path = `/v1/jobs/${encodeURIComponent(id)}`;
  const told = (event, data) =>
    store.set(({ events }) => ({ events: [...events, { at: Date.now(), event, data }].slice(-KEPT_EVENTS) }));
  try {
    await load(path, store, signal);
    if (ENDED.has(store.get().job.state)) return store.set({ isLive: true });
    await follow(`${path}/events`, {
      signal,
      onLink: (isLive) => store.set({ isLive }),
      onEvent({ event, data }) {
        if (!event) return false;
        store.set(({ job }) => ({ job: applyEvent(job, event, data) }));
        if (event === 'state' || event === 'end' || event === 'waiting') told(event, data);
        if (event === 'question' && data.state !== 'open') told(event, data);
        return event === 'end';
      },
    });
    // The ledger and the questions' ends, as they stay.
    await load(path, store, signal);
  } catch (error) {
    if (!signal.aborted) store.set({ failure: error.message });
  }
  return undefined;
}

async function load(path, store, signal) {
  const job = await get(path, { signal });
  store.set({ job });
}
