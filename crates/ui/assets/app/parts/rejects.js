// Bad records: how many for which reason, and each with its file and line.
import { html, useEffect, useMemo, useReducer } from '../markup.js';
import { ledgerOf } from '../job/job_events.js';
import { count } from '../quantities.js';
import { answerRows } from './answer_rows.js';
import { ResultTable } from './result_table.js';

const COLUMNS = ['table', 'file', 'line', 'byte', 'column', 'reason', 'text'].map((name) => ({
  name,
  type: name === 'line' || name === 'byte' ? 'int' : 'text',
}));

export function Rejects({ job }) {
  const [version, changed] = useReducer((times) => times + 1, 0);
  const path = `/v1/jobs/${job.job}/rejects`;
  const rows = useMemo(() => answerRows(path, COLUMNS, changed), [path]);
  useEffect(() => () => rows.close(), [rows]);
  useEffect(() => rows.refresh(), [rows, job.state]);
  return html`<div class="answer">
    <${Reasons} job=${job} />
    <div class="answer-body">
      ${rows.total > 0
        ? html`<${ResultTable} columns=${COLUMNS} rows=${rows} version=${version} label="Rejected records" />`
        : html`<p class="empty">${rows.failure ?? (rows.isFinal ? 'No record was rejected.' : 'They are listed when the job is done.')}</p>`}
    </div>
  </div>`;
}

export function Reasons({ job }) {
  const reasons = ledgerOf(job).flatMap((table) => Object.entries(table.reasons ?? {}).map(([reason, number]) => ({ table: table.name, reason, number })));
  if (!reasons.length) return null;
  return html`<ul class="reasons">
    ${reasons
      .sort((a, b) => b.number - a.number)
      .map(({ table, reason, number }) => html`<li key=${`${table} ${reason}`}><b>${count(number)}</b> ${table}: ${reason.replaceAll('_', ' ')}</li>`)}
  </ul>`;
}
