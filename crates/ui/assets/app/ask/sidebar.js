// What there is to ask about: tables with their columns, files on their way, workloads, what was asked before.
import { isLocal } from '../host.js';
import { html, useRef, useState } from '../markup.js';
import { Meter } from '../parts/parts.js';
import { count, plural, share, size } from '../quantities.js';
import { quoted } from '../sql_words.js';
import { ask, asking, changeSql, forgetHistory, loadTables, takeFiles } from './asking.js';

export function Sidebar({ state }) {
  return html`<aside class="sidebar" aria-label="Tables, workloads and history">
    ${isLocal && html`<${Tables} state=${state} />`}
    ${state.workloads.length > 0 && html`<${Workloads} workloads=${state.workloads} />`}
    ${isLocal && state.history.length > 0 && html`<${History} history=${state.history} />`}
  </aside>`;
}

function Tables({ state }) {
  const chooser = useRef(null);
  return html`<section>
    <header>
      <h2>Tables</h2>
      <button class="plain" title="Look at the files again" aria-label="Look at the files again" onClick=${() => loadTables(true)}>↻</button>
    </header>
    <ul class="tables">
      ${state.tables.map((table) => html`<${Table} key=${table.name} table=${table} />`)}
    </ul>
    ${state.uploads.map((upload) => html`<${Upload} key=${upload.name} upload=${upload} />`)}
    <input ref=${chooser} id="files" class="unseen" type="file" multiple tabindex="-1" aria-hidden="true" onChange=${(event) => takeFiles(event.currentTarget.files)} />
    <button class="add" onClick=${() => chooser.current.click()}>Add files…</button>
    ${state.trouble && html`<p class="note bad">${state.trouble}</p>`}
    ${state.notes.map((note) => html`<p class="note" key=${note}>${note}</p>`)}
  </section>`;
}

function Table({ table }) {
  const [isOpen, setOpen] = useState(true);
  const files = table.file_count === 1 ? table.files[0] : plural(table.file_count, 'file');
  const show = () => {
    const sql = `SELECT * FROM ${quoted(table.name)} LIMIT 1000`;
    changeSql(sql);
    ask({ sql });
  };
  return html`<li>
    <div class="table">
      <button class="plain twist" aria-expanded=${isOpen ? 'true' : 'false'} aria-label=${`Columns of ${table.name}`} onClick=${() => setOpen(!isOpen)}>
        ${isOpen ? '▾' : '▸'}
      </button>
      <button class="plain name" title=${`Show the first rows of ${files}`} onClick=${show}>${table.name}</button>
      <small title=${files}>${size(table.bytes)}</small>
    </div>
    ${isOpen && html`<${Columns} table=${table} />`}
  </li>`;
}

// Columns of a table; of very many, the first ones until all are asked for.
function Columns({ table }) {
  const FIRST = 40;
  const [all, setAll] = useState(false);
  const shown = all ? table.columns : table.columns.slice(0, FIRST);
  return html`<ul class="columns">
    ${shown.map(
      (column) => html`<li key=${column.name}>
        <button class="plain" title=${column.header === column.name ? 'Insert' : `“${column.header}” in the file`} onClick=${() => insert(quoted(column.name))}>
          ${column.name}<small>${column.type}</small>
        </button>
      </li>`,
    )}
    ${shown.length < table.columns.length &&
    html`<li><button class="plain" onClick=${() => setAll(true)}>${count(table.columns.length - shown.length)} more…</button></li>`}
  </ul>`;
}

// Puts a name where the caret is.
function insert(name) {
  const field = document.getElementById('sql');
  field?.focus();
  if (!document.execCommand('insertText', false, name)) changeSql(`${asking.get().sql}${name}`);
}

function Upload({ upload }) {
  return html`<div class="upload">
    <div><span class="name">${upload.name}</span> <small>${size(upload.received)} of ${size(upload.size)}</small></div>
    ${upload.error ? html`<p class="bad">${upload.error}</p>` : html`<${Meter} share=${share(upload.received, upload.size)} label=${`Taking in ${upload.name}`} />`}
  </div>`;
}

function Workloads({ workloads }) {
  return html`<section>
    <header><h2>Bundled workloads</h2></header>
    <ul class="workloads">
      ${workloads.map((workload) => html`<${Workload} key=${workload.name} workload=${workload} />`)}
    </ul>
  </section>`;
}

function Workload({ workload }) {
  const [isOpen, setOpen] = useState(workload.fits);
  return html`<li>
    <div class="table">
      <button class="plain twist" aria-expanded=${isOpen ? 'true' : 'false'} aria-label=${`Questions of ${workload.name}`} onClick=${() => setOpen(!isOpen)}>
        ${isOpen ? '▾' : '▸'}
      </button>
      ${workload.fits
        ? html`<button class="plain name" title="Ask all its questions in one pass" onClick=${() => ask({ workload: workload.name, queries: [] })}>${workload.name}</button>`
        : html`<span class="name quiet" title="Its files are not here">${workload.name}</span>`}
      <small>${workload.fits ? 'ask all' : isLocal ? 'no files' : ''}</small>
    </div>
    ${isOpen &&
    html`<ul class="columns">
      ${workload.queries.map(
        (query) => html`<li key=${query.name}>
          <button class="plain" disabled=${!workload.fits} title=${query.title} onClick=${() => ask({ workload: workload.name, queries: [query.name] })}>
            ${query.name}<small class="title">${query.title}</small>
          </button>
        </li>`,
      )}
    </ul>`}
  </li>`;
}

function History({ history }) {
  return html`<section>
    <header>
      <h2>Asked before</h2>
      <button class="plain" title="Forget" aria-label="Forget what was asked" onClick=${forgetHistory}>✕</button>
    </header>
    <ul class="history">
      ${history.slice(0, 30).map(
        (sql) => html`<li key=${sql}><button class="plain" title=${sql} onClick=${() => changeSql(sql)}>${sql.replace(/\s+/g, ' ')}</button></li>`,
      )}
    </ul>
  </section>`;
}
