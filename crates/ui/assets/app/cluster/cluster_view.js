// The cluster: who runs, who leads, what befell whom, on one time axis.
import { isLocal } from '../host.js';
import { addressOf, location } from '../location.js';
import { html, useEffect, useMemo, useState } from '../markup.js';
import { Empty, Failure, Panel } from '../parts/parts.js';
import { clock, count, duration, plural, size } from '../quantities.js';
import { useStore } from '../store.js';
import { watchCluster } from './cluster_watch.js';
import { EventList } from './event_list.js';
import { Members } from './members.js';
import { rates } from './throughput.js';
import { TimeAxis } from './time_axis.js';

// After so long without an answer the view says that it is old.
const OLD = 12_000;

export function ClusterView() {
  const watch = useMemo(() => watchCluster(), []);
  useEffect(() => () => watch.close(), [watch]);
  const { cluster, events, samples, isLive, isComplete, failure, at } = useStore(watch.store);
  const now = useNow(1000);
  if (!cluster) return failure ? html`<${Failure} text=${failure} />` : html`<p class="empty">…</p>`;
  const isOld = at !== null && now - at > OLD;
  return html`<div class="cluster">
    ${(isOld || (!isLive && isComplete)) &&
    html`<p class="notice" id="out-of-date" role="status">Out of date: this is how things were at ${clock(at)}${isLive ? '' : '; the stream of events is cut, and is being taken up again'}.</p>`}
    <${Facts} cluster=${cluster} samples=${samples} />
    ${isLocal
      ? html`<${Empty} title="This is one process">Without a cluster there is nobody to watch it. <code>tenaz up</code> starts one, with this page at every gateway.<//>`
      : html`<${TimeAxis} events=${events} members=${cluster.members} samples=${samples} now=${now} route=${useStore(location)} isComplete=${isComplete} />`}
    <div class="cluster-panels">
      <${Members} members=${cluster.members} leader=${cluster.leader} />
      ${!isLocal && html`<${EventList} events=${events} />`}
      ${cluster.tenants.length > 0 && html`<${Tenants} tenants=${cluster.tenants} />`}
    </div>
  </div>`;
}

function Facts({ cluster, samples }) {
  const up = cluster.members.filter(({ state }) => state === 'up').length;
  const memory = cluster.members.reduce((sum, { memory_bytes: bytes }) => sum + (bytes ?? 0), 0);
  const { now, most } = rates(samples);
  const unwatched = { unreachable: 'supervisors do not answer', none: isLocal ? 'not needed' : 'nobody watches' }[cluster.supervision];
  const facts = [
    ['leader', cluster.leader ? html`<b class="mono">${cluster.leader.name}</b> <small>term ${count(cluster.leader.term)}</small>` : html`<span class=${isLocal ? 'quiet' : 'warn'}>${unwatched ?? 'none'}</span>`],
    ['members', html`<b>${count(up)}</b> <small>of ${count(cluster.members.length)} up</small>`],
    ['broker', html`<b class=${{ up: 'good', away: 'bad', blocked: 'warn' }[cluster.broker.state]}>${cluster.broker.state}</b> <small>${cluster.broker.text ?? ''}</small>`],
    ['throughput', html`<b>${now === null ? '–' : `${size(now)}/s`}</b> <small>${most === null ? '' : `at most ${size(most)}/s`}</small>`],
    ['waiting chunks', html`<b>${count(samples.at(-1)?.waiting ?? null)}</b>`],
    ['memory', html`<b>${memory ? size(memory) : '–'}</b>`],
  ];
  return html`<dl class="facts">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function Tenants({ tenants }) {
  return html`<${Panel} title="Tenants">
    <div class="inside scroll-x">
      <table class="plain">
        <thead><tr><th>Tenant</th><th class="number">Jobs</th><th class="number">Open</th><th class="number">Bytes</th><th class="number">CPU</th></tr></thead>
        <tbody>
          ${tenants.map((tenant) => html`<tr key=${tenant.tenant}><td>${tenant.tenant}</td><td class="number">${count(tenant.jobs)}</td><td class="number">${count(tenant.open_jobs)}</td><td class="number">${size(tenant.bytes)}</td><td class="number">${duration(tenant.cpu_seconds)}</td></tr>`)}
        </tbody>
      </table>
      <p class="quiet">${plural(tenants.length, 'tenant')} · <a href=${addressOf('jobs')}>jobs</a></p>
    </div>
  <//>`;
}

function useNow(every) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}
