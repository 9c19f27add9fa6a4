// Asking a cluster: a bundled workload over files that are sent to it, table by table.
import { post } from '../api.js';
import { pauseBefore } from '../event_stream.js';
import { html, useRef, useState } from '../markup.js';
import { Failure, Meter } from '../parts/parts.js';
import { count, plural, share, size } from '../quantities.js';
import { tableOf } from '../table_files.js';
import { watchJob } from '../job/job_watch.js';
import { asking } from './asking.js';
import { sendTableFile } from './table_upload.js';

const WORKLOADS = [
  ['coffee', 'coffee shops: sales, turnover, customers'],
  ['steam', 'games and their reviews'],
  ['books', 'books and their ratings'],
];
const ATTEMPTS = 8;

export function ClusterQuestion() {
  const chooser = useRef(null);
  const [workload, setWorkload] = useState('coffee');
  const [files, setFiles] = useState([]);
  const [sending, setSending] = useState(null);
  const [failure, setFailure] = useState(null);
  const bytes = files.reduce((sum, file) => sum + file.size, 0);

  const add = (more) => setFiles([...files, ...more]);
  const send = async () => {
    setFailure(null);
    try {
      await sendJob(workload, files, setSending);
    } catch (error) {
      setFailure(error.message);
    }
    setSending(null);
  };
  return html`<section
    class="panel inside-pad cluster-question"
    aria-label="Question"
    onDragOver=${(event) => event.preventDefault()}
    onDrop=${(event) => {
      event.preventDefault();
      event.stopPropagation();
      add(event.dataTransfer.files);
    }}
  >
    <div class="line">
      <label>Workload${' '}
        <select value=${workload} onChange=${(event) => setWorkload(event.currentTarget.value)}>
          ${WORKLOADS.map(([name, about]) => html`<option key=${name} value=${name} selected=${name === workload}>${name}: ${about}</option>`)}
        </select>
      </label>
      <input ref=${chooser} class="unseen" type="file" multiple tabindex="-1" aria-hidden="true" onChange=${(event) => add(event.currentTarget.files)} />
      <button onClick=${() => chooser.current.click()}>Add its files…</button>
      <span class="quiet">${files.length ? `${plural(files.length, 'file')}, ${size(bytes)}` : 'or drop them here'}</span>
      ${files.length > 0 && html`<button class="plain" onClick=${() => setFiles([])}>forget them</button>`}
      <button class="main" id="run" disabled=${!files.length || sending} onClick=${send}>Ask</button>
    </div>
    ${sending && html`<p class="quiet" role="status">${sending.name}: ${size(sending.sent)} of ${size(sending.size)}, file ${count(sending.place)} of ${count(sending.files)}</p><${Meter} share=${share(sending.done + sending.sent, bytes)} label="Sent" />`}
    ${failure && html`<${Failure} text=${failure} />`}
    <p class="quiet">
      Own questions over own files are asked from where the files are:${' '}
      <code>tenaz sql --data DIR --gateway ${window.location.origin} "SELECT …"</code>; on one machine, <code>tenaz ui --data DIR</code> asks from the page.
    </p>
  </section>`;
}

async function sendJob(workload, files, tell) {
  const bytes = files.reduce((sum, file) => sum + file.size, 0);
  const { job, tables } = await post('/v1/jobs', { workload, data_bytes: bytes });
  asking.get().watch?.close();
  asking.set({ watch: watchJob(job) });
  const byTable = new Map(tables.map((table) => [table, files.filter((file) => tableOf(file.name, tables) === table)]));
  const without = tables.filter((table) => !byTable.get(table).length);
  if (without.length) {
    await post(`/v1/jobs/${job}/cancel`);
    throw new Error(`there is no file for ${without.join(', ')}: files are known by their names, such as ${without[0]}.csv`);
  }
  let done = 0;
  let place = 0;
  for (const [table, mine] of byTable) {
    for (const [index, file] of mine.entries()) {
      place += 1;
      const told = { name: file.name, size: file.size, place, files: files.length, done };
      await again(() => sendTableFile(job, table, index + 1, file, (sent) => tell({ ...told, sent })));
      done += file.size;
    }
    await again(() => post(`/v1/jobs/${job}/tables/${encodeURIComponent(table)}/finish`, { files: mine.map((_, index) => index + 1) }));
  }
}

// The same again after a cut: what has arrived is not stored twice.
async function again(work) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      const passes = error.status === undefined || error.status === 503 || error.status === 429;
      if (!passes || attempt >= ATTEMPTS) throw error;
      await new Promise((resume) => setTimeout(resume, pauseBefore(attempt)));
    }
  }
}
