// The answers of a job: one tab for each question, each as a table, a chart, its plan; and the bad records.
import { isLocal } from '../host.js';
import { questionsOf, titleOf } from '../job/job_events.js';
import { PlanGraph } from '../job/plan_graph.js';
import { addressOf } from '../location.js';
import { html, useEffect, useMemo, useReducer, useState } from '../markup.js';
import { answerRows } from '../parts/answer_rows.js';
import { Chart } from '../parts/chart.js';
import { Downloads } from '../parts/downloads.js';
import { Empty, Failure, Meter, Print, State, Tabs } from '../parts/parts.js';
import { Rejects } from '../parts/rejects.js';
import { ResultTable } from '../parts/result_table.js';
import { count, duration, plural, share, size } from '../quantities.js';
import { useStore } from '../store.js';
import { cancel } from './asking.js';

const FORMS = [
  { id: 'table', name: 'Table' },
  { id: 'chart', name: 'Chart' },
  { id: 'plan', name: 'Plan' },
];
const SIGNS = { final: '✓', failed: '✗', open: '' };

export function Answers({ watch }) {
  const { job, isLive, failure } = useStore(watch.store);
  const [chosen, choose] = useState(null);
  const [form, setForm] = useState('table');
  if (failure) return html`<${Failure} text=${failure} />`;
  if (!job) return html`<p class="empty">…</p>`;
  const questions = questionsOf(job);
  const question = questions.find(({ name }) => name === chosen) ?? questions[0];
  const rejected = job.progress?.rejected ?? 0;
  const tabs = [
    ...questions.map(({ name, state }) => ({ id: name, name, sign: SIGNS[state] })),
    ...(rejected ? [{ id: ' rejects', name: `Rejected ${count(rejected)}` }] : []),
  ];
  const showsRejects = chosen === ' rejects' && rejected > 0;
  return html`<section class="answers panel" aria-label="Answers">
    <${RunLine} job=${job} isLive=${isLive} />
    ${(tabs.length > 1 || showsRejects) &&
    html`<div class="questions"><${Tabs} label="Questions" tabs=${tabs} chosen=${showsRejects ? ' rejects' : question?.name} choose=${choose} /></div>`}
    ${showsRejects
      ? html`<${Rejects} job=${job} />`
      : question
        ? html`<${Answer} key=${`${job.job} ${question.name}`} job=${job} question=${question} form=${form} setForm=${setForm} />`
        : job.error && html`<${Failure} text=${job.error.text} />`}
  </section>`;
}

// How far it is while it runs, and how it went.
function RunLine({ job, isLive }) {
  const runs = job.state === 'processing' || job.state === 'uploading';
  const { progress } = job;
  const sum = (of) => job.tables.reduce((all, table) => all + (of(table) ?? 0), 0);
  const done = isLocal ? share(sum((table) => table.read_bytes), sum((table) => table.bytes)) : share(progress.chunks, progress.chunks_known || null);
  return html`<div class="run-line">
    <${State} state=${job.state} />
    ${runs && html`<${Meter} share=${done} label="Read so far" />`}
    <span class="quiet">
      ${plural(progress.records, 'record')} · ${size(progress.bytes)}${progress.seconds === undefined ? '' : ` · ${duration(progress.seconds)}`}
      ${!isLive && runs ? ' · cut off' : ''}
    </span>
    <span class="space"></span>
    ${runs && html`<button class="danger" id="cancel" onClick=${() => cancel(job.job)}>Cancel</button>`}
    <a href=${addressOf('job', job.job)}>job</a>
  </div>`;
}

function Answer({ job, question, form, setForm }) {
  const [version, changed] = useReducer((times) => times + 1, 0);
  const path = `/v1/jobs/${job.job}/results/${encodeURIComponent(question.name)}`;
  const rows = useMemo(() => answerRows(path, question.columns, changed), [path]);
  useEffect(() => () => rows.close(), [rows]);
  // More is known than when the rows were last asked for.
  useEffect(() => rows.refresh(), [rows, question.state, question.early_rows, job.state]);
  if (question.state === 'failed') return html`<${Failure} text=${question.error?.text ?? 'this question could not be answered'} />`;
  if (job.state === 'failed') return html`<${Failure} text=${job.error?.text ?? 'the job has failed'} />`;
  const total = question.rows ?? rows.total;
  return html`<div class="answer">
    <div class="answer-bar">
      <${Tabs} label="Shown as" tabs=${FORMS} chosen=${form} choose=${setForm} />
      <span class="quiet">
        ${rows.isFinal || question.state === 'final' ? plural(total, 'row') : `${plural(rows.total, 'row')} so far`}
        ${rows.isPartial && ` · the first ${count(rows.total)} are shown`}
      </span>
      ${question.fingerprint && html`<span class="quiet" title="SHA-256 of the answer as CSV">fingerprint <${Print} value=${question.fingerprint} /></span>`}
      ${titleOf(question) && html`<span class="quiet title">${titleOf(question)}</span>`}
      <span class="space"></span>
      ${question.state === 'final' && html`<${Downloads} job=${job} question=${question} />`}
    </div>
    ${rows.failure && job.state !== 'cancelled' && html`<${Failure} text=${rows.failure} />`}
    <div class="answer-body">${bodyOf({ form, job, question, rows, version })}</div>
  </div>`;
}

function bodyOf({ form, job, question, rows, version }) {
  if (form === 'plan') return html`<${PlanGraph} stages=${stagesOf(job.stages ?? [], question.name)} running=${job.state === 'processing'} />`;
  if (job.state === 'cancelled') return html`<${Empty} title="Cancelled">Nothing is kept of it.<//>`;
  if (rows.total === 0) {
    return rows.isFinal
      ? html`<${Empty} title="No rows">The question was answered, and nothing fits it.<//>`
      : html`<p class="empty">${isLocal ? 'Rows come when they are certain.' : '…'}</p>`;
  }
  if (form === 'chart') return html`<${Chart} columns=${question.columns} rows=${rows} version=${question.state} />`;
  return html`<${ResultTable} columns=${question.columns} rows=${rows} version=${version} label=${`Rows of ${question.name}`} />`;
}

// The stages that a question needs.
function stagesOf(stages, question) {
  const byNumber = new Map(stages.map((stage) => [stage.stage, stage]));
  const wanted = new Set();
  const take = (stage) => {
    if (!stage || wanted.has(stage)) return;
    wanted.add(stage);
    [...(stage.reads ?? []), ...(stage.broadcasts ?? [])].forEach((read) => take(byNumber.get(read)));
  };
  stages.filter((stage) => stage.query === question).forEach(take);
  return stages.filter((stage) => wanted.has(stage));
}
