// What the events of a job's stream make of what is known of it. Every event says how things are, so later ones replace earlier ones.

export const ENDED = new Set(['done', 'failed', 'cancelled', 'expired']);

export function applyEvent(job, event, data) {
  switch (event) {
    case 'state':
      return { ...job, state: data.state };
    case 'table':
      return { ...job, tables: replaced(job.tables ?? [], data) };
    case 'question':
      return { ...job, questions: replaced(job.questions ?? [], data) };
    case 'progress':
      return { ...job, progress: data };
    case 'stages':
      return { ...job, stages: mergedStages(job.stages ?? [], data) };
    case 'owners':
    case 'doing':
      return { ...job, [event]: data };
    case 'waiting':
      return { ...job, waiting_for: data.waiting_for };
    case 'end':
      return { ...job, state: data.state, error: data.error ?? null, results: data.results ?? job.results, waiting_for: null };
    default:
      return job;
  }
}

function replaced(list, item) {
  return list.some((known) => known.name === item.name)
    ? list.map((known) => (known.name === item.name ? { ...known, ...item } : known))
    : [...list, item];
}

// Counters come without the operators, which never change.
function mergedStages(known, news) {
  const before = new Map(known.map((stage) => [stage.stage, stage]));
  return news.map((stage) => ({ ...before.get(stage.stage), ...stage }));
}

// The questions of a job, also where only its results tell of them.
export function questionsOf(job) {
  const questions = job.questions ?? [];
  const done = new Map((job.results?.queries ?? []).map((query) => [query.name, query]));
  const failed = new Map((job.results?.failed ?? []).map((query) => [query.name, query]));
  const named = questions.length
    ? questions
    : [...done.keys(), ...failed.keys()].map((name) => ({ name, title: '', state: 'open', columns: [] }));
  return named.map((question) => {
    if (done.has(question.name)) return { ...question, ...done.get(question.name), state: 'final' };
    if (failed.has(question.name)) return { ...question, state: 'failed', error: question.error ?? failed.get(question.name) };
    return question;
  });
}

// What a question is about, where that says more than its SQL does.
export function titleOf({ title = '', sql }) {
  const plain = (text) => text.replace(/\s+/g, ' ').replace(/…$/, '').trim();
  return sql && plain(sql).startsWith(plain(title)) ? '' : title;
}

// The ledger: records = accepted + rejected, for every table.
export function ledgerOf(job) {
  return (job.results?.tables ?? []).map((table) => ({ ...table, balanced: table.records === table.accepted + table.rejected }));
}
