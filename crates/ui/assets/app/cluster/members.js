// The members, of which only those in view exist: five hundred cost as much as twenty.
import { addressOf } from '../location.js';
import { html } from '../markup.js';
import { FixedList } from '../parts/fixed_list.js';
import { Panel, State } from '../parts/parts.js';
import { count, duration, plural, size } from '../quantities.js';

const ROLES = ['supervisor', 'gateway', 'worker', 'broker'];

export function Members({ members, leader }) {
  const order = (one, other) =>
    ROLES.indexOf(one.role) - ROLES.indexOf(other.role) || one.name.localeCompare(other.name, 'en', { numeric: true });
  const sorted = [...members].sort(order);
  return html`<${Panel} title=${`Members (${count(members.length)})`} className="members wide">
    <div class="member-head quiet" aria-hidden="true"><span>name</span><span>state</span><span>life</span><span>up</span><span>memory</span><span>CPU</span><span>does</span></div>
    <${FixedList} items=${sorted} rowHeight=${30} label="Members" row=${(member) => html`<${Member} member=${member} leads=${leader?.name === member.name} />`} />
  <//>`;
}

function Member({ member, leads }) {
  const title = [member.text, member.host, member.pid && `pid ${member.pid}`, member.url, member.last_ending && `last ending: ${member.last_ending}`].filter(Boolean).join('\n');
  return html`<div class="member" title=${title} data-member=${member.name}>
    <span class="mono name">${member.name}${leads && html` <b class="accent" title="leads">★</b>`}</span>
    <${State} state=${member.state} />
    <span>${member.life ?? '–'}${member.restarts ? html` <small class="quiet">${plural(member.restarts, 'restart')}</small>` : ''}</span>
    <span>${duration(member.up_seconds)}</span>
    <span>${size(member.memory_bytes)}</span>
    <span>${member.cpu_seconds === null ? '–' : duration(member.cpu_seconds)}</span>
    <span class="does quiet">${member.state === 'silent' ? `silent for ${duration(member.silent_seconds)}` : doing(member)}</span>
  </div>`;
}

function doing({ doing: now, claims, text }) {
  if (now?.length) {
    return now.slice(0, 3).map(({ job, text: what, seconds }, index) => html`<a key=${index} href=${addressOf('job', job)}>${what}</a> ${duration(seconds)} `);
  }
  const partitions = (claims ?? []).reduce((sum, claim) => sum + claim.partitions.length, 0);
  return text ?? (partitions ? `owns ${plural(partitions, 'partition')}` : '');
}
