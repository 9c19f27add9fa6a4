// Who serves this page: `local` (tenaz ui) or `gateway`.
export const host = document.documentElement.dataset.host;
export const version = document.documentElement.dataset.version;
export const isLocal = host === 'local';
