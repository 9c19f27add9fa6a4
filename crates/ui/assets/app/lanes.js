// The cluster's past on one time axis: a lane for each process, its lives as bars, what befell it as marks.

// What is drawn of each kind of event: a mark has a shape as well as a colour, so nobody needs to tell colours apart.
export const MARKS = {
  killed: { shape: 'cross', tone: 'bad', text: 'killed' },
  died: { shape: 'dot', tone: 'bad', text: 'died' },
  given_up: { shape: 'square', tone: 'bad', text: 'given up' },
  paused: { shape: 'pause', tone: 'warn', text: 'hangs' },
  stood_back: { shape: 'square', tone: 'warn', text: 'stood back' },
  resumed: { shape: 'play', tone: 'good', text: 'goes on' },
  started: { shape: 'up', tone: 'good', text: 'started' },
  joined: { shape: 'up', tone: 'good', text: 'joined' },
  elected: { shape: 'star', tone: 'accent', text: 'elected' },
  stepped_down: { shape: 'ring', tone: 'accent', text: 'stepped down' },
  took_over: { shape: 'diamond', tone: 'accent', text: 'took over' },
  replayed: { shape: 'ring', tone: 'accent', text: 'replayed' },
  link_renewed: { shape: 'ring', tone: 'warn', text: 'link renewed' },
  left: { shape: 'down', tone: 'quiet', text: 'left' },
  ended: { shape: 'down', tone: 'quiet', text: 'ended' },
};

const BEGINS = new Set(['started', 'joined']);
const ENDS = new Set(['killed', 'died', 'ended', 'left', 'given_up']);
const ROLES = ['supervisor', 'gateway', 'worker', 'broker'];

// Lanes {name, role, lives: [{from, to|null, life}], pauses: [{from, to|null}], marks: [event]} from events in the order of time.
// Members that run now have an open life, whatever was forgotten about its beginning.
export function lanes(events, members = []) {
  const byName = new Map();
  const lane = (name, role) => {
    const found = byName.get(name) ?? { name, role: role ?? roleOf(name), lives: [], pauses: [], marks: [] };
    byName.set(name, found);
    return found;
  };
  for (const event of events) {
    if (!event.name) continue;
    const at = Date.parse(event.at);
    const mine = lane(event.name, event.role);
    const open = mine.lives.at(-1)?.to === null ? mine.lives.at(-1) : undefined;
    if (BEGINS.has(event.kind)) {
      const same = open && (event.life === undefined || event.life === null || event.life === open.life);
      if (!same) {
        if (open) open.to = at;
        mine.lives.push({ from: at, to: null, life: event.life ?? null });
      }
    } else if (ENDS.has(event.kind)) {
      if (open) open.to = at;
      else if (!mine.lives.length) mine.lives.push({ from: null, to: at, life: event.life ?? null });
      closePause(mine, at);
    } else if (event.kind === 'paused') {
      mine.pauses.push({ from: at, to: null });
    } else if (event.kind === 'resumed') {
      closePause(mine, at);
    }
    if (MARKS[event.kind]) mine.marks.push({ ...event, time: at });
  }
  for (const member of members) {
    const mine = lane(member.name, member.role);
    const runs = !['dead', 'given_up'].includes(member.state);
    if (runs && mine.lives.at(-1)?.to !== null) mine.lives.push({ from: null, to: null, life: member.life ?? null });
    mine.member = member;
  }
  const order = (one) => (ROLES.indexOf(one.role) + 1 || ROLES.length + 1);
  return [...byName.values()].sort((a, b) => order(a) - order(b) || a.name.localeCompare(b.name, 'en', { numeric: true }));
}

function closePause(lane, at) {
  const pause = lane.pauses.at(-1);
  if (pause && pause.to === null) pause.to = at;
}

function roleOf(name) {
  return ROLES.find((role) => name.startsWith(role)) ?? '';
}

// The times of the axis' ticks between two instants (milliseconds), at most so many, at round distances.
export function ticks(from, to, most) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400].map((s) => s * 1000);
  const step = steps.find((candidate) => (to - from) / candidate <= most) ?? Math.ceil((to - from) / most / 86400000) * 86400000;
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

// Questions that became final, by job: fingerprints of one name that differ between jobs of one workload would be seen at once.
export function fingerprints(events) {
  return events.filter((event) => event.kind === 'question_final').map((event) => ({ ...event, time: Date.parse(event.at) }));
}
