// The address as a store: which view is shown, and going to another one.
import { setToken } from './api.js';
import { formatRoute, parseRoute } from './route.js';
import { makeStore } from './store.js';

export const location = makeStore(read());

function read() {
  const route = parseRoute(window.location.hash);
  if (route.parameters.token) setToken(route.parameters.token);
  return route;
}

window.addEventListener('hashchange', () => location.set(read()));

// The address of a view. The token of `tenaz ui` stays in it, so that the page can be loaded again.
export function addressOf(view, id = '', parameters = {}) {
  const { token } = location.get().parameters;
  return formatRoute({ view, id, parameters: token ? { ...parameters, token } : parameters });
}

export function go(view, id, parameters) {
  window.location.hash = addressOf(view, id, parameters);
}
