// A file of a table on its way to a gateway, with progress. (fetch cannot tell how far an upload is.)
import { authorize, CutOff, Problem } from '../api.js';

export function sendTableFile(job, table, number, file, tell) {
  const path = `/v1/jobs/${job}/tables/${encodeURIComponent(table)}/files/${number}?name=${encodeURIComponent(file.name)}`;
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('PUT', path);
    authorize((name, value) => request.setRequestHeader(name, value));
    if (file.name.toLowerCase().endsWith('.gz')) request.setRequestHeader('content-encoding', 'gzip');
    request.upload.onprogress = (event) => tell(event.loaded);
    request.onerror = () => reject(new CutOff('the connection was cut'));
    request.onload = () => (request.status < 300 ? resolve() : reject(new Problem(request.status, documentOf(request.responseText))));
    tell(0);
    request.send(file);
  });
}

function documentOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
