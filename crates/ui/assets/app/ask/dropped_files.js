// Dropped files on their way: piece by piece, each sent again after a cut from where the server says that the file is.
import { CutOff, Problem, request } from '../api.js';
import { pauseBefore } from '../event_stream.js';

const PIECE_BYTES = 4 << 20;
const ATTEMPTS = 8;

// Sends the files one after the other; `change(place, {received?, error?})` is told how far each is.
export async function sendFiles(files, change) {
  for (const [place, file] of files.entries()) {
    try {
      await sendFile(file, (received) => change(place, { received }));
    } catch (error) {
      change(place, { error: error.message });
    }
  }
}

async function sendFile(file, tell) {
  let from = 0;
  let failures = 0;
  do {
    try {
      from = await sendPiece(file, from);
      failures = 0;
      tell(from);
    } catch (error) {
      if (error instanceof Problem && typeof error.document.received === 'number') from = error.document.received;
      else if (!(error instanceof CutOff) && error.status !== 503) throw error;
      failures += 1;
      if (failures > ATTEMPTS) throw error;
      await new Promise((resume) => setTimeout(resume, pauseBefore(failures)));
    }
  } while (from < file.size);
}

async function sendPiece(file, from) {
  const path = `/v1/files/${encodeURIComponent(file.name)}?from=${from}&size=${file.size}`;
  const response = await request(path, { method: 'PUT', body: file.slice(from, from + PIECE_BYTES) });
  return (await response.json()).received;
}
