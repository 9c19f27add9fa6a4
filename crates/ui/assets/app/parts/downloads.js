// An answer as a file, in any format.
import { Problem, request } from '../api.js';
import { isLocal } from '../host.js';
import { html, useState } from '../markup.js';

const LOCAL_FORMATS = [['csv', 'csv'], ['tsv', 'tsv'], ['json', 'json'], ['ndjson', 'ndjson'], ['markdown', 'md'], ['arrow', 'arrow'], ['parquet', 'parquet'], ['table', 'txt']];
const GATEWAY_FORMATS = [['csv', 'csv'], ['ndjson', 'ndjson'], ['json', 'json']];

export function Downloads({ job, question }) {
  const [told, setTold] = useState('');
  const formats = isLocal ? LOCAL_FORMATS : GATEWAY_FORMATS;
  const choose = async (event) => {
    const format = event.currentTarget.value;
    event.currentTarget.value = '';
    if (!format) return;
    setTold('…');
    try {
      await download(job.job, question.name, format, Object.fromEntries(formats)[format]);
      setTold('');
    } catch (error) {
      setTold(error instanceof Problem && error.status === 404 ? `this tenaz was built without ${format}` : error.message);
    }
  };
  return html`<span class="downloads">
    ${told && html`<span class="quiet" role="status">${told}</span>`}
    <select aria-label="Download as" onChange=${choose}>
      <option value="">Download…</option>
      ${formats.map(([format]) => html`<option key=${format} value=${format}>${format}</option>`)}
    </select>
  </span>`;
}

async function download(job, question, format, ending) {
  const path = isLocal
    ? `/v1/jobs/${job}/downloads/${encodeURIComponent(question)}.${format}`
    : `/v1/jobs/${job}/results/${encodeURIComponent(question)}?format=${format}`;
  const response = await request(path);
  let bytes = await response.blob();
  if (!isLocal && format === 'csv') bytes = await withoutEndRecord(bytes);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(bytes);
  link.download = `${question}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// A gateway's stream ends with a line about its end; a file of CSV has none.
async function withoutEndRecord(blob) {
  const TAIL = 4096;
  const tail = await blob.slice(Math.max(0, blob.size - TAIL)).text();
  const at = tail.lastIndexOf('\n# ');
  if (!tail.slice(at + 1).startsWith('# end ')) throw new Error('the answer was cut off before its end');
  const endBytes = new TextEncoder().encode(tail.slice(at + 1)).length;
  return blob.slice(0, blob.size - endBytes);
}
