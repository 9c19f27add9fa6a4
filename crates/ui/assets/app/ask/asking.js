// What is asked: the text, its mistake, the tables, the job that answers. It outlives the view, so nothing is lost on a look at
// another one.
import { get, post, Problem } from '../api.js';
import { isLocal } from '../host.js';
import { watchJob } from '../job/job_watch.js';
import { makeStore } from '../store.js';
import { mistakeRange } from '../sql_words.js';
import { sendFiles } from './dropped_files.js';

const KEPT_QUESTIONS = 100;
const HISTORY = 'tenaz.history';

export const asking = makeStore({
  sql: '',
  tables: [],
  notes: [],
  workloads: [],
  data: null,
  trouble: null,
  isLoaded: false,
  mistake: null,
  stages: null,
  watch: null,
  isAsking: false,
  failure: null,
  history: readHistory(),
  uploads: [],
});

// The tables and bundled workloads; again where files have changed.
export async function loadTables(again = false) {
  try {
    const found = isLocal ? await (again ? post('/v1/tables') : get('/v1/tables')) : {};
    asking.set({ tables: [], notes: [], data: null, trouble: null, ...found, isLoaded: true });
    if (isLocal) checkSoon();
  } catch (error) {
    asking.set({ trouble: error.message, isLoaded: true });
  }
}

export function changeSql(sql) {
  asking.set({ sql, mistake: null, failure: null });
  checkSoon();
}

let timer;
let checking = 0;

// Plans the text once nobody has typed for a moment.
function checkSoon() {
  clearTimeout(timer);
  if (isLocal) timer = setTimeout(check, 350);
}

async function check() {
  const { sql } = asking.get();
  const round = (checking += 1);
  if (!sql.trim()) return asking.set({ mistake: null, stages: null });
  try {
    const { stages } = await post('/v1/check', { sql });
    if (round === checking && asking.get().sql === sql) asking.set({ mistake: null, stages });
  } catch (error) {
    if (round === checking && asking.get().sql === sql && error instanceof Problem) asking.set({ mistake: mistakeOf(sql, error), stages: null });
  }
  return undefined;
}

// What is wrong with the text, and where. The text itself is on the screen already, with the place marked.
function mistakeOf(sql, problem) {
  const { line, column } = problem.document;
  const text = problem.message.split('\n')[0].replace(/^query:(\d+):(\d+): /, 'line $1, column $2: ');
  return { text, ...(mistakeRange(sql, line, column) ?? { start: -1, end: -1 }) };
}

// Asks: {sql} or {workload, queries}.
export async function ask(asked) {
  const { watch, sql } = asking.get();
  asking.set({ isAsking: true, failure: null, mistake: null });
  try {
    const created = await post('/v1/jobs', asked);
    watch?.close();
    asking.set({ watch: watchJob(created.job), mistake: null });
    if (asked.sql) remember(asked.sql);
  } catch (error) {
    const mistake = asked.sql !== undefined && error instanceof Problem ? mistakeOf(sql, error) : null;
    asking.set(mistake ? { mistake } : { failure: error.message });
  }
  asking.set({ isAsking: false });
}

export function cancel(job) {
  return post(`/v1/jobs/${job}/cancel`);
}

// Files that were dropped: sent one after the other, then the tables are looked at again.
export async function takeFiles(files) {
  const uploads = [...files].map((file) => ({ name: file.name, size: file.size, received: 0, error: null }));
  asking.set({ uploads });
  const change = (place, news) =>
    asking.set(({ uploads: now }) => ({ uploads: now.map((upload, index) => (index === place ? { ...upload, ...news } : upload)) }));
  await sendFiles([...files], change);
  await loadTables();
  asking.set(({ uploads: now }) => ({ uploads: now.filter((upload) => upload.error) }));
}

function remember(sql) {
  const history = [sql, ...asking.get().history.filter((known) => known !== sql)].slice(0, KEPT_QUESTIONS);
  asking.set({ history });
  try {
    localStorage.setItem(HISTORY, JSON.stringify(history));
  } catch {
    // A browser that keeps nothing: the history ends with the page.
  }
}

export function forgetHistory() {
  asking.set({ history: [] });
  try {
    localStorage.removeItem(HISTORY);
  } catch {
    // The same.
  }
}

function readHistory() {
  try {
    const kept = JSON.parse(localStorage.getItem(HISTORY) ?? '[]');
    return Array.isArray(kept) ? kept.filter((sql) => typeof sql === 'string') : [];
  } catch {
    return [];
  }
}
