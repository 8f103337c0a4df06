import { Failure } from '../../values/failure.ts';
import type { JsonObject } from '../../values/json/json.ts';

/** A message to all nodes besides changes of the log, such as a purge of caches. */
export interface Notice {
  readonly name: string;
  readonly data: JsonObject;
}

/**
 * A put into a database beside the log: its name, its key (hexadecimal for bytes) and its value;
 * null removes the key.
 */
export type SharedPut = readonly [string, string | number, string | null];

/** The content of an entry of a shared log (docs/design/cluster.md#entries). */
export interface EntryContent {
  /** The data folder that has appended it: memberOf. */
  readonly member: string;
  /** Rows of the log as they are stored: all rows of one or more transactions. */
  readonly rows: readonly string[];
  /** Idempotency keys: keys of the database `vk` in hexadecimal digits, and their values. */
  readonly claims: readonly (readonly [string, string])[];
  /** The puts of the deliverer of hooks. */
  readonly puts: readonly SharedPut[];
  readonly notices: readonly Notice[];
}

/** An entry with nothing in it. */
export const emptyContent: EntryContent = {
  member: '',
  rows: [],
  claims: [],
  puts: [],
  notices: [],
};

/** The first line of an entry. */
interface EntryHead extends Omit<EntryContent, 'rows'> {
  readonly rows: number;
}

/** The bytes of an entry: UTF-8, a line of JSON and one line for each row. */
export function encodeEntry({ rows, ...content }: EntryContent): Uint8Array {
  const head: EntryHead = { rows: rows.length, ...content };
  return Buffer.from([JSON.stringify(head), ...rows].join('\n'));
}

/**
 * The content of an entry. Throws an Error for bytes that are none, and `conflict` for members that
 * this version does not know: without them, the node would have another state than the others.
 */
export function decodeEntry(data: Uint8Array): EntryContent {
  const [first = '', ...rows] = Buffer.from(data).toString().split('\n');
  const { rows: count, ...content } = JSON.parse(first) as EntryHead;
  const unknown = Object.keys(content).find((name) => !Object.hasOwn(emptyContent, name));
  if (unknown !== undefined) throw newerFailure(unknown);
  if (count !== rows.length) {
    throw new Error(`an entry of the shared log has ${rows.length} rows instead of ${count}`);
  }
  return { rows, ...content };
}

function newerFailure(member: string): Failure {
  return new Failure(
    'conflict',
    `An entry of the cluster has the member ${JSON.stringify(member)} of a newer version of ` +
      'Waymark: upgrade this machine.',
  );
}
