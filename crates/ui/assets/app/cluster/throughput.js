// Throughput and queue depth, from how far the jobs were at the times we asked.

const KEPT_SAMPLES = 3600;

// A sample {at, bytes, waiting, rate}: bytes read of all jobs, chunks that wait, bytes a second since the sample before.
export function addSample(samples, at, jobs) {
  const progress = new Map(jobs.map((job) => [job.job, job.progress ?? {}]));
  const waiting = jobs
    .filter((job) => job.state === 'uploading' || job.state === 'processing')
    .reduce((sum, { progress: now }) => sum + Math.max(0, (now?.chunks_known ?? 0) - (now?.chunks ?? 0)), 0);
  const bytesOf = new Map([...progress].map(([job, now]) => [job, now.bytes ?? 0]));
  const last = samples.at(-1);
  let rate = null;
  if (last && at > last.at) {
    // A job that was removed, or is counted anew, takes nothing back.
    const gained = [...bytesOf].reduce((sum, [job, bytes]) => sum + Math.max(0, bytes - (last.bytesOf.get(job) ?? 0)), 0);
    rate = (gained * 1000) / (at - last.at);
  }
  return [...samples.slice(-KEPT_SAMPLES), { at, bytesOf, waiting, rate }];
}

// The highest rate, and what it is now.
export function rates(samples) {
  const known = samples.filter(({ rate }) => rate !== null).map(({ rate }) => rate);
  return { now: known.at(-1) ?? null, most: known.length ? Math.max(...known) : null };
}
