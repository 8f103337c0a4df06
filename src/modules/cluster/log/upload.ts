import type { Databases } from '../../../core/log/databases.ts';
import { decodeEntry, emptyContent, encodeEntry } from '../../../core/log/shared/entry.ts';
import type { SharedEntry, SharedLog } from '../../../core/log/shared/shared-log.ts';
import { putSharedPlace } from '../../../core/log/shared/shared-place.ts';
import type { Reads } from '../../../core/log/store.ts';
import type { WriteQueue } from '../../../core/log/write/write-queue.ts';
import { Failure } from '../../../core/values/failure.ts';
import { allPuts } from './recorded-puts.ts';

/** Characters of rows that one entry of an upload has, besides those of its last transaction … */
const uploadedCharactersMax = 500_000;

/** … and idempotency keys. */
const uploadedClaimsMax = 5_000;

/** How much of the history a shared log has. */
interface Uploaded {
  readonly position: number;
  readonly rows: number;
  readonly claims: number;
  readonly puts: number;
}

/**
 * Appends the whole history of a single machine to an empty shared log, and makes the folder a part
 * of the cluster. Continues after an interrupted call; no other process may write meanwhile.
 * Rejects with `conflict` if the shared log has other rows.
 */
export async function uploadHistory(
  {
    databases,
    reads,
    queue,
  }: {
    readonly databases: Databases;
    readonly reads: Reads;
    readonly queue: WriteQueue;
  },
  shared: SharedLog,
  report: (rows: number, of: number) => void,
): Promise<void> {
  const newest = reads.seq();
  const present = await uploaded(databases, shared);
  let { position, rows, claims } = present;
  const append = async (content: Parameters<typeof encodeEntry>[0]): Promise<void> => {
    const appended = await shared.append(encodeEntry(content), position);
    if (appended === undefined) throw othersFailure();
    position = appended;
  };
  while (rows < newest) {
    const texts = transactionsAfter(databases, reads, rows);
    await append({ ...emptyContent, rows: texts });
    rows += texts.length;
    report(rows, newest);
  }
  for (;;) {
    const some = claimsAfter(databases, claims);
    if (some.length === 0) break;
    await append({ ...emptyContent, claims: some });
    claims += some.length;
  }
  for (const some of grouped(allPuts(databases), present.puts, uploadedClaimsMax)) {
    await append({ ...emptyContent, puts: some });
  }
  await queue.write(() => () => {
    putSharedPlace(databases, { id: shared.id, position });
    return { result: undefined, bytes: 0 };
  });
}

/** Compares what the shared log has already with this folder. */
async function uploaded(databases: Databases, shared: SharedLog): Promise<Uploaded> {
  const end = await shared.end();
  let [position, rows, claims, puts] = [0, 0, 0, 0];
  const reading = new AbortController();
  if (end === 0) return { position, rows, claims, puts };
  for await (const entry of shared.entries(0, reading.signal)) {
    const content = contentOf(entry);
    for (const text of content.rows) {
      rows += 1;
      if (databases.log.get(rows) !== text) throw othersFailure();
    }
    claims += content.claims.length;
    puts += content.puts.length;
    ({ position } = entry);
    if (position >= end) reading.abort();
  }
  return { position, rows, claims, puts };
}

function contentOf({ data }: SharedEntry): ReturnType<typeof decodeEntry> {
  const content = decodeEntry(data);
  if (content.notices.length > 0) throw othersFailure();
  return content;
}

/** Whole transactions after a seq, about as many as fit into one message. */
function transactionsAfter({ log }: Databases, reads: Reads, after: number): readonly string[] {
  const texts: string[] = [];
  let characters = 0;
  for (let seq = after + 1; seq <= reads.seq() && characters < uploadedCharactersMax;) {
    const last = reads.txnSeqs(reads.change(seq)?.txn ?? '')?.last ?? seq;
    for (; seq <= last; seq += 1) {
      const text = log.get(seq);
      if (text === undefined) throw new Error(`the log has no change ${seq}`);
      texts.push(text);
      characters += text.length;
    }
  }
  return texts;
}

function claimsAfter({ vk }: Databases, skipped: number): readonly (readonly [string, string])[] {
  const range = vk.getRange({ offset: skipped, limit: uploadedClaimsMax });
  return [...range].map(({ key, value }) => [Buffer.from(key).toString('hex'), value] as const);
}

/** Values in groups, without the first ones. */
function* grouped<T>(values: Iterable<T>, skipped: number, size: number): Iterable<readonly T[]> {
  let group: T[] = [];
  let at = 0;
  for (const value of values) {
    at += 1;
    if (at <= skipped) continue;
    group.push(value);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

function othersFailure(): Failure {
  return new Failure(
    'conflict',
    'The cluster has changes of another machine: its stream cannot take the history of this one.',
  );
}
