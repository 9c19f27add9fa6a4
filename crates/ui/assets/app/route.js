// The fragment of the address: which view is shown. `#/job/0123?question=q1`; `tenaz ui` keeps its token there, too, because a
// fragment is never sent to a server.

export function parseRoute(fragment) {
  const [path, query = ''] = fragment.replace(/^#/, '').split('?', 2);
  const [view = '', id = ''] = path.split('/').filter(Boolean).map(decode);
  return { view: view || 'ask', id, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

export function formatRoute({ view, id = '', parameters = {} }) {
  const path = ['#', view, id].filter(Boolean).map((part) => (part === '#' ? part : encodeURIComponent(part))).join('/');
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '');
  const query = new URLSearchParams(given).toString();
  return query ? `${path}?${query}` : path;
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
