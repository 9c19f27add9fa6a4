// All jobs, newest first.
import { get } from '../api.js';
import { addressOf } from '../location.js';
import { html, useEffect, useState } from '../markup.js';
import { FixedList } from '../parts/fixed_list.js';
import { Empty, Failure, State } from '../parts/parts.js';
import { clock, count, plural, size } from '../quantities.js';

// The list has no stream of its own; it is asked for while it is looked at.
const EVERY = 2000;

export function JobsView() {
  const [jobs, setJobs] = useState(null);
  const [failure, setFailure] = useState(null);
  const [wanted, setWanted] = useState('');
  useEffect(() => {
    const abort = new AbortController();
    let timer;
    const look = async () => {
      try {
        if (!document.hidden) setJobs((await get('/v1/jobs', { signal: abort.signal })).jobs.reverse());
        setFailure(null);
      } catch (error) {
        if (abort.signal.aborted) return;
        setFailure(error.message);
      }
      timer = setTimeout(look, EVERY);
    };
    look();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, []);
  if (!jobs) return failure ? html`<${Failure} text=${failure} />` : html`<p class="empty">…</p>`;
  if (!jobs.length) return html`<${Empty} title="No jobs yet"><a href=${addressOf('ask')}>Ask a question</a><//>`;
  const word = wanted.toLowerCase();
  const shown = word ? jobs.filter((job) => `${job.job} ${job.workload} ${job.state} ${job.tenant ?? ''}`.toLowerCase().includes(word)) : jobs;
  return html`<section class="jobs" aria-label="Jobs">
    <div class="jobs-bar">
      <h2>${plural(shown.length, 'job')}</h2>
      <input type="text" placeholder="Filter" aria-label="Filter jobs" value=${wanted} onInput=${(event) => setWanted(event.currentTarget.value)} />
    </div>
    <${FixedList} items=${shown} rowHeight=${34} height="100%" label="Jobs" row=${(job) => html`<${JobLine} job=${job} />`} />
  </section>`;
}

function JobLine({ job }) {
  const { progress } = job;
  return html`<a class="job-line" href=${addressOf('job', job.job)}>
    <${State} state=${job.state} />
    <span class="mono">${job.job}</span>
    <span class="what" title=${job.workload}>${job.workload.replace(/\s+/g, ' ')}</span>
    <span class="quiet number">${count(progress.records)} records</span>
    <span class="quiet number">${size(progress.bytes)}</span>
    <span class="quiet">${clock(job.created)}</span>
  </a>`;
}
