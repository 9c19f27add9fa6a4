// What befell the cluster, newest first, in words.
import { addressOf } from '../location.js';
import { html, useState } from '../markup.js';
import { FixedList } from '../parts/fixed_list.js';
import { Panel } from '../parts/parts.js';
import { clock, count, plural } from '../quantities.js';
import { MARKS } from '../lanes.js';

export function EventList({ events }) {
  const [wanted, setWanted] = useState('');
  const word = wanted.toLowerCase();
  const shown = (word ? events.filter((event) => eventText(event).toLowerCase().includes(word)) : events).toReversed();
  const tools = html`<input type="text" placeholder="Filter" aria-label="Filter events" value=${wanted} onInput=${(event) => setWanted(event.currentTarget.value)} />`;
  return html`<${Panel} title=${`Events (${count(shown.length)})`} tools=${tools} className="wide" id="events">
    ${shown.length
      ? html`<${FixedList} items=${shown} rowHeight=${24} label="Events" row=${(event) => html`<${Line} event=${event} />`} />`
      : html`<p class="empty">${word ? 'No event fits.' : 'Nothing has happened yet.'}</p>`}
  <//>`;
}

function Line({ event }) {
  const tone = MARKS[event.kind]?.tone ?? 'quiet';
  return html`<div class="event"><time>${clock(event.at)}</time><span class="mono">${event.name ?? ''}</span><span class=${tone}>${event.kind.replaceAll('_', ' ')}</span><span class="quiet rest">${rest(event)}${event.job && html` <a class="mono" href=${addressOf('job', event.job)}>${event.job}</a>`}</span></div>`;
}

function rest(event) {
  return [
    event.life !== undefined && event.life !== null && `life ${event.life}`,
    event.term !== undefined && event.term !== null && `term ${event.term}`,
    event.question,
    event.rows !== undefined && event.rows !== null && plural(event.rows, 'row'),
    event.fingerprint && event.fingerprint.slice(0, 12),
    event.count !== undefined && event.count !== null && `${count(event.count)} times`,
    event.partitions?.length && `partitions ${event.partitions.join(', ')}`,
    event.by && `by ${event.by}`,
    event.cause,
  ]
    .filter(Boolean)
    .join(' · ');
}

export function eventText(event) {
  return `${event.name ?? ''} ${event.kind.replaceAll('_', ' ')} ${rest(event)} ${event.job ?? ''}`;
}
