// One job: how far it is, its questions, its plan, who owns what, the ledger, what happened.
import { isLocal } from '../host.js';
import { addressOf } from '../location.js';
import { html, useEffect, useMemo, useReducer, useState } from '../markup.js';
import { answerRows } from '../parts/answer_rows.js';
import { Downloads } from '../parts/downloads.js';
import { FixedList } from '../parts/fixed_list.js';
import { Empty, Failure, Meter, Panel, Print, State, Tabs } from '../parts/parts.js';
import { Reasons } from '../parts/rejects.js';
import { ResultTable } from '../parts/result_table.js';
import { clock, count, duration, plural, share, size } from '../quantities.js';
import { useStore } from '../store.js';
import { cancel } from '../ask/asking.js';
import { ENDED, ledgerOf, questionsOf, titleOf } from './job_events.js';
import { watchJob } from './job_watch.js';
import { PlanGraph } from './plan_graph.js';

export function JobView({ id }) {
  const watch = useMemo(() => watchJob(id), [id]);
  useEffect(() => () => watch.close(), [watch]);
  const { job, events, isLive, failure } = useStore(watch.store);
  if (failure && !job) return html`<${Empty} title="This job cannot be shown"><p>${failure}</p><p><a href=${addressOf('jobs')}>All jobs</a></p><//>`;
  if (!job) return html`<p class="empty">…</p>`;
  const runs = !ENDED.has(job.state);
  return html`<div class="job">
    <header class="job-head">
      <h1><span class="mono">${job.job}</span> <span class="what" title=${job.text ?? job.workload}>${job.text ?? job.workload}</span></h1>
      <${State} state=${job.state} />
      <span class="quiet">since ${clock(job.created)}${job.partitions ? ` · ${plural(job.partitions, 'partition')}` : ''}</span>
      <span class="space"></span>
      ${runs && !isLive && html`<span class="warn" role="status">out of date: the stream of events is cut, and is being taken up again</span>`}
      ${runs && html`<button class="danger" id="cancel" onClick=${() => cancel(job.job)}>Cancel</button>`}
    </header>
    ${job.error && html`<${Failure} text=${job.error.text} />`}
    ${job.waiting_for && html`<p class="notice">Waits: ${job.waiting_for.text}</p>`}
    ${job.doing?.length > 0 && html`<p class="doing quiet">${job.doing.join(' · ')}</p>`}
    <div class="job-panels">
      <${TablesPanel} job=${job} />
      <${QuestionsPanel} job=${job} />
      <${Panel} title="Plan" className="wide"><${PlanGraph} stages=${job.stages ?? []} running=${runs} /><//>
      <${RowsPanel} job=${job} />
      ${job.owners?.length > 0 && html`<${OwnersPanel} owners=${job.owners} />`}
      <${LedgerPanel} job=${job} />
      <${EventsPanel} events=${events} />
    </div>
  </div>`;
}

function TablesPanel({ job }) {
  return html`<${Panel} title="Tables">
    <div class="inside">
      ${job.tables.map((table) => {
        const known = tableShare(table, job);
        return html`<div class="table-progress" key=${table.name}>
          <span class="mono">${table.name}</span>
          <span class="quiet number">${table.records === null ? '' : plural(table.records, 'record')} ${table.bytes === null ? '' : size(table.bytes)}</span>
          <${Meter} share=${known} label=${`${table.name} read`} />
        </div>`;
      })}
      <${Totals} job=${job} />
    </div>
  <//>`;
}

function tableShare(table, job) {
  if (job.state === 'done') return 1;
  if (table.read_bytes !== undefined) return share(table.read_bytes, table.bytes);
  if (table.closed && table.chunks !== null) return share(table.chunks_received, table.chunks);
  return job.state === 'uploading' ? null : 0;
}

function Totals({ job }) {
  const { progress } = job;
  const chunks = progress.chunks_known ? `${count(progress.chunks)} of ${plural(progress.chunks_known, 'chunk')} · ` : '';
  const time = progress.seconds === undefined ? '' : ` · ${duration(progress.seconds)}`;
  return html`<p class="quiet totals">${chunks}${plural(progress.records, 'record')} · ${size(progress.bytes)} · ${count(progress.rejected)} rejected${time}</p>`;
}

function QuestionsPanel({ job }) {
  const questions = questionsOf(job);
  return html`<${Panel} title="Questions">
    <div class="inside scroll-x">
      <table class="plain">
        <thead><tr><th>Question</th><th>State</th><th class="number">Rows</th><th>Fingerprint</th><th>Final at</th></tr></thead>
        <tbody>
          ${questions.map(
            (question) => html`<tr key=${question.name}>
              <td><span class="mono">${question.name}</span> <span class="quiet">${titleOf(question)}</span>${question.error && html`<div class="bad">${question.error.text}</div>`}</td>
              <td><${State} state=${question.state} /></td>
              <td class="number">${question.rows === null || question.rows === undefined ? '–' : count(question.rows)}</td>
              <td><${Print} value=${question.fingerprint} /></td>
              <td>${question.final_at ? clock(question.final_at) : '–'}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  <//>`;
}

function RowsPanel({ job }) {
  const questions = questionsOf(job);
  const [chosen, choose] = useState(null);
  const question = questions.find(({ name }) => name === chosen) ?? questions[0];
  if (!question) return null;
  const tabs = questions.map(({ name, state }) => ({ id: name, name, sign: state === 'final' ? '✓' : '' }));
  const tools = html`${question.state === 'final' && html`<${Downloads} job=${job} question=${question} />`}`;
  return html`<${Panel} title="Rows as they arrive" className="wide" tools=${tools}>
    ${tabs.length > 1 && html`<div class="questions"><${Tabs} label="Questions" tabs=${tabs} chosen=${question.name} choose=${choose} /></div>`}
    <${QuestionRows} key=${question.name} job=${job} question=${question} />
  <//>`;
}

function QuestionRows({ job, question }) {
  const [version, changed] = useReducer((times) => times + 1, 0);
  const path = `/v1/jobs/${job.job}/results/${encodeURIComponent(question.name)}`;
  const isKnown = question.columns.length > 0;
  const rows = useMemo(() => (isKnown ? answerRows(path, question.columns, changed) : null), [path, isKnown]);
  useEffect(() => () => rows?.close(), [rows]);
  useEffect(() => rows?.refresh(), [rows, question.state, question.early_rows, job.state]);
  if (question.state === 'failed') return html`<${Failure} text=${question.error?.text ?? ''} />`;
  if (!rows || rows.total === 0) {
    const text = rows?.failure ?? (rows?.isFinal ? 'The answer has no rows.' : isLocal || question.state !== 'final' ? 'None is certain yet.' : '…');
    return html`<p class="empty">${text}</p>`;
  }
  return html`<div class="rows-box"><${ResultTable} columns=${question.columns} rows=${rows} version=${version} label=${`Rows of ${question.name}`} /></div>`;
}

function OwnersPanel({ owners }) {
  const byMember = new Map();
  for (const { partition, member } of owners) {
    const name = member ?? 'nobody';
    byMember.set(name, [...(byMember.get(name) ?? []), partition === null ? 'results' : partition]);
  }
  return html`<${Panel} title="Partitions by owner">
    <div class="inside">
      <${FixedList}
        items=${[...byMember]}
        rowHeight=${30}
        label="Owners"
        row=${([name, partitions]) => html`<div class="owner"><span class=${name === 'nobody' ? 'mono warn' : 'mono'}>${name}</span><span class="partitions">${partitions.map((partition) => html`<i key=${partition}>${partition}</i>`)}</span></div>`}
      />
    </div>
  <//>`;
}

function LedgerPanel({ job }) {
  const ledger = ledgerOf(job);
  return html`<${Panel} title="Ledger: records = accepted + rejected" id="ledger">
    <div class="inside scroll-x">
      ${ledger.length
        ? html`<table class="plain">
            <thead><tr><th>Table</th><th class="number">Records</th><th class="number">Accepted</th><th class="number">Rejected</th><th>Balance</th></tr></thead>
            <tbody>
              ${ledger.map(
                (table) => html`<tr key=${table.name}>
                  <td class="mono">${table.name}${table.partial && html` <span class="quiet">(read in part)</span>`}</td>
                  <td class="number">${count(table.records)}</td>
                  <td class="number">${count(table.accepted)}</td>
                  <td class="number">${count(table.rejected)}</td>
                  <td>${table.balanced ? html`<span class="good">✓ even</span>` : html`<span class="bad">✗ uneven</span>`}</td>
                </tr>`,
              )}
            </tbody>
          </table>`
        : html`<p class="quiet">The ledger is closed when the job is done.</p>`}
      <${Reasons} job=${job} />
    </div>
  <//>`;
}

function EventsPanel({ events }) {
  return html`<${Panel} title="Events">
    ${events.length
      ? html`<ol class="inside events">
          ${[...events].reverse().map(({ at, event, data }, index) => html`<li key=${events.length - index}><time>${clock(at)}</time> ${eventText(event, data)}</li>`)}
        </ol>`
      : html`<p class="empty">None since this page began to watch.</p>`}
  <//>`;
}

function eventText(event, data) {
  if (event === 'question') return `${data.name} is ${data.state}${data.rows === null ? '' : `: ${plural(data.rows, 'row')}`}`;
  if (event === 'waiting') return data.waiting_for ? `waits: ${data.waiting_for.text}` : 'goes on';
  if (event === 'end') return `ended: ${data.state}`;
  return `is ${data.state}`;
}
