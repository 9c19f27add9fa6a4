// The plan as a graph: what reads what, how many rows went where, and how unevenly.
import { html, useMemo, useState } from '../markup.js';
import { NODE, planGraph } from '../plan_layout.js';
import { count, duration, size } from '../quantities.js';

export function PlanGraph({ stages, running }) {
  const [chosen, choose] = useState(null);
  const graph = useMemo(() => planGraph(stages), [stages]);
  if (!stages.length) return html`<p class="empty">${running ? 'The plan is not known yet.' : 'No plan was kept.'}</p>`;
  const stage = stages.find((known) => known.stage === chosen);
  return html`<div class="plan">
    <div class="plan-scroll">
      <svg width=${graph.width} height=${graph.height} viewBox=${`0 0 ${graph.width} ${graph.height}`} role="img" aria-label=${described(graph)}>
        ${graph.edges.map((edge) => html`<${Edge} key=${`${edge.from} ${edge.to} ${edge.kind}`} edge=${edge} nodes=${graph.nodes} />`)}
        ${graph.nodes.map((node) => html`<${Node} key=${node.id} node=${node} isChosen=${node.stage && node.stage.stage === chosen} choose=${choose} />`)}
      </svg>
    </div>
    ${stage && html`<${Stage} stage=${stage} close=${() => choose(null)} />`}
  </div>`;
}

function described({ nodes, edges }) {
  const names = new Map(nodes.map((node) => [node.id, node.stage ? `stage ${node.stage.stage}` : node.label]));
  return `Plan. ${edges.map(({ from, to }) => `${names.get(from)} to ${names.get(to)}`).join('; ')}`;
}

function Edge({ edge, nodes }) {
  const [from, to] = [edge.from, edge.to].map((id) => nodes.find((node) => node.id === id));
  const [x1, y1, x2, y2] = [from.x + NODE.width, from.y + NODE.height / 2, to.x, to.y + NODE.height / 2];
  const middle = (x1 + x2) / 2;
  return html`<path class=${`edge ${edge.kind}`} d=${`M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}`} />`;
}

function Node({ node, isChosen, choose }) {
  const { stage } = node;
  const lines = stage ? stageLines(stage) : [];
  const pick = () => stage && choose(isChosen ? null : stage.stage);
  const keys = (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    pick();
  };
  const done = stage?.tasks_known ? Math.min(1, stage.tasks_done / stage.tasks_known) : null;
  return html`<g
    class=${`node ${node.kind} ${isChosen ? 'chosen' : ''}`}
    transform=${`translate(${node.x},${node.y})`}
    tabindex=${stage ? 0 : undefined}
    role=${stage ? 'button' : undefined}
    aria-label=${stage ? `stage ${stage.stage}: ${node.label}. ${lines.join('. ')}` : node.label}
    onClick=${pick}
    onKeyDown=${keys}
  >
    <rect width=${NODE.width} height=${NODE.height} rx=${node.kind === 'stage' ? 5 : 20} />
    ${stage
      ? html`<text class="name" x="10" y="18">${cut(`${stage.stage} ${node.label}`, 21)}</text>
          ${lines.slice(0, 2).map((line, index) => html`<text key=${index} class="detail" x="10" y=${34 + index * 15}>${cut(line, 28)}</text>`)}
          ${done !== null && html`<rect class="done" x="0" y=${NODE.height - 4} height="4" width=${NODE.width * done} />`}`
      : html`<text class="name" text-anchor="middle" x=${NODE.width / 2} y="28">${cut(node.label, 22)}</text>
          <text class="detail" text-anchor="middle" x=${NODE.width / 2} y="44">${node.kind}</text>`}
  </g>`;
}

function stageLines(stage) {
  const lines = [];
  if (stage.rows_in !== undefined) lines.push(`${brief(stage.rows_in)} → ${brief(stage.rows_out)} rows`);
  if (stage.skew) lines.push(`skew ${brief(stage.skew.min)} / ${brief(stage.skew.median)} / ${brief(stage.skew.max)}`);
  if (lines.length < 2) lines.push({ chunk: 'for each chunk', partition: 'for each partition', single: 'once' }[stage.tasks] ?? stage.tasks);
  if (lines.length < 2) lines.push({ hash: 'by key to partitions', spread: 'spread', one: 'all to one', broadcast: 'to everybody', results: 'rows of the answer' }[stage.edge] ?? stage.edge);
  return lines;
}

function brief(number) {
  if (number === null || number === undefined) return '–';
  const [unit, name] = [[1e9, 'G'], [1e6, 'M'], [1e4, 'k']].find(([least]) => number >= least) ?? [1, ''];
  return name ? `${(number / (name === 'k' ? 1e3 : unit)).toFixed(1)} ${name}` : count(number);
}

function cut(text, chars) {
  return text.length > chars ? `${text.slice(0, chars - 1)}…` : text;
}

// What there is to know of one stage.
function Stage({ stage, close }) {
  const facts = [
    ['tasks', stage.tasks_known === undefined ? stage.tasks : `${count(stage.tasks_done)} of ${count(stage.tasks_known)} done, ${count(stage.running)} running`],
    ['in', stage.rows_in === undefined ? null : `${count(stage.rows_in)} rows, ${size(stage.bytes_in)}`],
    ['out', stage.rows_out === undefined ? null : `${count(stage.rows_out)} rows, ${size(stage.bytes_out)}`],
    ['busy', stage.busy_seconds === undefined ? null : duration(stage.busy_seconds)],
    ['skew over partitions', stage.skew ? `least ${count(stage.skew.min)}, median ${count(stage.skew.median)}, most ${count(stage.skew.max)} rows` : null],
    ['keys', stage.keys?.join(', ')],
  ].filter(([, value]) => value);
  return html`<aside class="stage">
    <header><h2>Stage ${stage.stage}</h2><button class="plain" aria-label="Close" onClick=${close}>✕</button></header>
    <dl>${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <pre>${(stage.plan ?? []).join('\n')}</pre>
  </aside>`;
}
