// One time axis: throughput and jobs above, a lane for each process below. What happened at the same time stands below each other.
import { addressOf, go } from '../location.js';
import { fingerprints, lanes, MARKS, ticks } from '../lanes.js';
import { html, useLayoutEffect, useMemo, useRef, useState } from '../markup.js';
import { Panel } from '../parts/parts.js';
import { visibleRows } from '../row_pages.js';
import { clock, duration, size } from '../quantities.js';
import { eventText } from './event_list.js';

const LANE = 26;
const NAMES = 132;
const RATE = 64;
const SHOWN_LANES = 16;
const SPANS = [[60, 'last minute'], [300, 'last 5 minutes'], [900, 'last 15 minutes'], [3600, 'last hour'], [0, 'everything']];

export function TimeAxis({ events, members, samples, now, route, isComplete }) {
  const box = useRef(null);
  const [width, setWidth] = useState(900);
  const [span, setSpan] = useState(300);
  const [scrollTop, setScrollTop] = useState(0);
  useLayoutEffect(() => {
    const measure = () => setWidth(Math.max(240, box.current.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const all = useMemo(() => lanes(events, members), [events, members]);
  const jobs = useMemo(() => jobSpans(events), [events]);
  const prints = useMemo(() => fingerprints(events), [events]);

  const fixed = fixedSpan(route.parameters);
  const oldest = events.length ? Date.parse(events[0].at) : now - 60_000;
  const to = fixed?.to ?? now;
  const from = fixed?.from ?? (span ? now - span * 1000 : Math.min(oldest - 1000, now - 10_000));
  const plot = Math.max(80, width - NAMES - 12);
  const x = (time) => NAMES + ((Math.min(Math.max(time, from), to) - from) / (to - from)) * plot;
  const inView = (time) => time >= from && time <= to;
  const scale = { from, to, x, inView, plot };

  const share = () => go('cluster', '', { from: new Date(from).toISOString(), to: new Date(to).toISOString() });
  const height = Math.min(all.length, SHOWN_LANES) * LANE;
  const { first, end } = visibleRows(scrollTop, all.length, LANE, height);
  const tools = html`
    ${fixed
      ? html`<a href=${addressOf('cluster')}>follow again</a>`
      : html`<button class="plain" onClick=${share} title="Puts this span of time into the address: a link to it">hold this span</button>
          <select aria-label="Span of time" value=${span} onChange=${(event) => setSpan(Number(event.currentTarget.value))}>
            ${SPANS.map(([seconds, name]) => html`<option key=${seconds} value=${seconds} selected=${seconds === span}>${name}</option>`)}
          </select>`}
  `;
  return html`<${Panel} title=${`${clock(from)} to ${clock(to)} (${duration((to - from) / 1000)})`} tools=${tools} id="time-axis">
    <div class="time-axis" ref=${box}>
      <svg width=${width} height=${RATE + 22} role="img" aria-label="Throughput and time">
        <${Ticks} scale=${scale} height=${RATE + 22} labels=${true} />
        <${Rate} samples=${samples} scale=${scale} />
      </svg>
      ${jobs.length > 0 && html`<${Jobs} jobs=${jobs} prints=${prints} scale=${scale} width=${width} />`}
      <div class="lanes" style=${{ height: `${height}px` }} onScroll=${(event) => setScrollTop(event.currentTarget.scrollTop)} tabindex="0" role="list" aria-label="Processes">
        <div style=${{ height: `${all.length * LANE}px` }}>
          ${all.slice(first, end).map((lane, index) => html`<${Lane} key=${lane.name} lane=${lane} top=${(first + index) * LANE} scale=${scale} width=${width} />`)}
        </div>
      </div>
      ${!all.length && html`<p class="empty">${isComplete ? 'No process has been seen yet.' : '…'}</p>`}
      <${Legend} />
    </div>
  <//>`;
}

function fixedSpan({ from, to }) {
  const [begin, end] = [Date.parse(from ?? ''), Date.parse(to ?? '')];
  return Number.isFinite(begin) && Number.isFinite(end) && begin < end ? { from: begin, to: end } : null;
}

function Ticks({ scale, height, labels }) {
  const most = Math.max(2, Math.floor(scale.plot / 84));
  return ticks(scale.from, scale.to, most).map(
    (time) => html`<g key=${time}>
      <line class="tick" x1=${scale.x(time)} x2=${scale.x(time)} y1=${labels ? 18 : 0} y2=${height} />
      ${labels && html`<text class="time" text-anchor="middle" x=${scale.x(time)} y="12">${clock(time)}</text>`}
    </g>`,
  );
}

function Rate({ samples, scale }) {
  const shown = samples.filter(({ at, rate }) => rate !== null && scale.inView(at));
  const most = Math.max(1, ...shown.map(({ rate }) => rate));
  const y = (rate) => 22 + (RATE - 6) * (1 - rate / most);
  const line = shown.map(({ at, rate }, index) => `${index ? 'L' : 'M'}${scale.x(at).toFixed(1)},${y(rate).toFixed(1)}`).join('');
  return html`<g class="rate">
    <text class="lane-name" x="8" y="36">throughput</text>
    <text class="time" x="8" y="52">${shown.some(({ rate }) => rate > 0) ? `most ${size(most)}/s` : 'since this page is open'}</text>
    ${shown.length > 1 && html`<path class="area" d=${`${line}L${scale.x(shown.at(-1).at)},${RATE + 16}L${scale.x(shown[0].at)},${RATE + 16}Z`} /><path class="line" d=${line} />`}
  </g>`;
}

// Jobs from their creation to their end; those of one workload below each other, so that equal fingerprints stand together.
function jobSpans(events) {
  const jobs = new Map();
  for (const event of events) {
    if (!event.job) continue;
    const at = Date.parse(event.at);
    if (event.kind === 'job_created') jobs.set(event.job, { job: event.job, from: at, to: null, cause: event.cause ?? '' });
    if (event.kind === 'job_ended') jobs.set(event.job, { from: null, ...jobs.get(event.job), job: event.job, to: at, cause: event.cause ?? '' });
  }
  return [...jobs.values()];
}

const SHOWN_JOBS = 6;

function Jobs({ jobs, prints, scale, width }) {
  const shown = jobs.filter(({ from, to }) => (from ?? 0) <= scale.to && (to ?? Infinity) >= scale.from).slice(-SHOWN_JOBS);
  return shown.map(
    ({ job, from, to, cause }) => html`<svg class="lane job-lane" key=${job} width=${width} height=${LANE} role="img" aria-label=${`job ${job}${cause ? ` ${cause}` : ''}`}>
      <${Ticks} scale=${scale} height=${LANE} />
      <a href=${addressOf('job', job)}><text class="lane-name mono" x="8" y="17">${job}</text></a>
      <rect class="span" x=${scale.x(from ?? scale.from)} y="8" height="10" rx="3" width=${Math.max(2, scale.x(to ?? scale.to) - scale.x(from ?? scale.from))}><title>${cause || (to ? 'ended' : 'runs')}</title></rect>
      ${prints
        .filter((print) => print.job === job && scale.inView(print.time))
        .map((print) => html`<g key=${print.question} class="print-mark" data-kind="question_final" data-fingerprint=${print.fingerprint} transform=${`translate(${scale.x(print.time)},13)`}><title>${eventText(print)}</title><circle r="5" /><path d="M-2.4,0.2 L-0.6,2.2 L2.6,-2" /></g>`)}
    </svg>`,
  );
}

function Lane({ lane, top, scale, width }) {
  const { name, lives, pauses, marks } = lane;
  const state = lane.member?.state;
  return html`<svg class=${`lane ${state ?? ''}`} role="listitem" style=${{ top: `${top}px` }} width=${width} height=${LANE} aria-label=${laneText(lane)} data-lane=${name}>
    <${Ticks} scale=${scale} height=${LANE} />
    <text class="lane-name mono" x="8" y="17">${name}</text>
    ${lives.map(({ from, to, life }, index) => {
      const [begin, end] = [scale.x(from ?? scale.from), scale.x(to ?? scale.to)];
      const isOutside = (to !== null && to < scale.from) || (from !== null && from > scale.to);
      return !isOutside && html`<rect key=${index} class=${`life ${lane.role}`} x=${begin} y="8" height="10" rx="2" width=${Math.max(1.5, end - begin - 1)}><title>${name}${life === null ? '' : `, life ${life}`}</title></rect>`;
    })}
    ${pauses.filter(({ from, to }) => from <= scale.to && (to ?? scale.to) >= scale.from).map(({ from, to }, index) => html`<rect key=${`p${index}`} class="hang" x=${scale.x(from)} y="8" height="10" width=${Math.max(2, scale.x(to ?? scale.to) - scale.x(from))}><title>hangs</title></rect>`)}
    ${marks.filter(({ time }) => scale.inView(time)).map((mark, index) => html`<${Mark} key=${mark.id ?? index} mark=${mark} x=${scale.x(mark.time)} />`)}
  </svg>`;
}

function laneText({ name, lives, marks }) {
  const kinds = new Map();
  for (const { kind } of marks) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  return `${name}: ${lives.length} lives${[...kinds].map(([kind, number]) => `, ${number} × ${MARKS[kind].text}`).join('')}`;
}

const SHAPES = {
  cross: 'M-4,-4 L4,4 M4,-4 L-4,4',
  dot: 'M-3.5,0 a3.5,3.5 0 1,0 7,0 a3.5,3.5 0 1,0 -7,0 Z',
  square: 'M-3.5,-3.5 h7 v7 h-7 Z',
  pause: 'M-3,-4 v8 M3,-4 v8',
  play: 'M-3,-4 L4,0 L-3,4 Z',
  up: 'M-4,3 L0,-4 L4,3 Z',
  down: 'M-4,-3 L0,4 L4,-3 Z',
  star: 'M0,-5 L1.5,-1.6 L5,-1.4 L2.3,0.9 L3.2,4.5 L0,2.4 L-3.2,4.5 L-2.3,0.9 L-5,-1.4 L-1.5,-1.6 Z',
  ring: 'M-3.5,0 a3.5,3.5 0 1,0 7,0 a3.5,3.5 0 1,0 -7,0',
  diamond: 'M0,-4.5 L4,0 L0,4.5 L-4,0 Z',
};

function Mark({ mark, x }) {
  const { shape, tone } = MARKS[mark.kind];
  return html`<path class=${`mark ${shape} ${tone}`} data-kind=${mark.kind} data-name=${mark.name} data-at=${mark.at} transform=${`translate(${x},13)`} d=${SHAPES[shape]}><title>${clock(mark.time)} ${eventText(mark)}</title></path>`;
}

function Legend() {
  const shown = ['killed', 'died', 'paused', 'started', 'elected', 'took_over', 'replayed', 'given_up', 'ended'];
  return html`<ul class="legend">
    ${shown.map((kind) => html`<li key=${kind}><svg width="14" height="14" aria-hidden="true"><path class=${`mark ${MARKS[kind].shape} ${MARKS[kind].tone}`} transform="translate(7,7)" d=${SHAPES[MARKS[kind].shape]} /></svg>${MARKS[kind].text}</li>`)}
    <li><svg width="14" height="14" aria-hidden="true"><g class="print-mark" transform="translate(7,7)"><circle r="5" /><path d="M-2.4,0.2 L-0.6,2.2 L2.6,-2" /></g></svg>answer final</li>
  </ul>`;
}
