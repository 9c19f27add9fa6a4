// Asking: tables at the left, the question above, its answers below.
import { isLocal } from '../host.js';
import { html, useEffect, useState } from '../markup.js';
import { Empty, Failure } from '../parts/parts.js';
import { useStore } from '../store.js';
import { Answers } from './answers.js';
import { ask, asking, changeSql, loadTables, takeFiles } from './asking.js';
import { ClusterQuestion } from './cluster_question.js';
import { Sidebar } from './sidebar.js';
import { SqlEditor } from './sql_editor.js';

export function AskView() {
  const state = useStore(asking);
  const [isOver, setOver] = useState(false);
  useEffect(() => void loadTables(), []);
  const run = () => state.sql.trim() && ask({ sql: state.sql });
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    if (isLocal && event.dataTransfer.files.length) takeFiles(event.dataTransfer.files);
  };
  const over = (event) => {
    if (!isLocal || ![...event.dataTransfer.types].includes('Files')) return;
    event.preventDefault();
    setOver(true);
  };
  return html`<div
    class=${`ask ${isLocal ? '' : 'alone'}`}
    onDragOver=${over}
    onDragLeave=${(event) => event.currentTarget === event.target && setOver(false)}
    onDrop=${drop}
  >
    ${isLocal && html`<${Sidebar} state=${state} />`}
    <div class="asked">
      ${isLocal ? html`<${Question} state=${state} run=${run} />` : html`<${ClusterQuestion} />`}
      ${state.failure && html`<${Failure} text=${state.failure} />`}
      ${state.watch ? html`<${Answers} key=${state.watch.id} watch=${state.watch} />` : html`<${Before} state=${state} />`}
    </div>
    ${isOver && html`<div class="drop-here" aria-hidden="true">Drop the files: each becomes a table</div>`}
  </div>`;
}

function Question({ state, run }) {
  const { sql, tables, mistake, isAsking } = state;
  return html`<section class="question panel" aria-label="Question">
    <${SqlEditor} sql=${sql} change=${changeSql} run=${run} tables=${tables} mistake=${mistake} />
    <footer>
      <button class="main" id="run" onClick=${run} disabled=${isAsking || !sql.trim()}>Ask<kbd>Ctrl ⏎</kbd></button>
      <div class="mistake" id="sql-mistake" role="status">${mistake ? mistake.text : html`<span class="quiet keys">Ctrl Space completes</span>`}</div>
    </footer>
  </section>`;
}

function Before({ state }) {
  if (!isLocal) return html`<${Empty} title="Ask this cluster">Choose a workload and its files: they are sent to the cluster, and the answers appear here.<//>`;
  if (!state.isLoaded) return html`<p class="empty">…</p>`;
  if (state.tables.length) {
    return html`<${Empty} title="Ask about these tables">
      A click on a table shows its first rows. Several questions, separated by <code>;</code>, are answered in one pass over the files.
    <//>`;
  }
  return html`<${Empty} title="There are no tables yet">
    <p>Drop CSV files onto this page, or choose them at the left. They stay on this machine.</p>
    ${state.trouble && html`<p class="bad">${state.trouble}</p>`}
  <//>`;
}
