import type { Store } from '../../core/log/store.ts';
import type { Log } from '../../core/report/log.ts';
import { Failure } from '../../core/values/failure.ts';
import { type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import type { WaymarkClient } from '../peers/waymark-client.ts';
import { rowLogPart } from './log/open-row-log.ts';

/** Rows that one transaction of a copy applies, and about how many characters of them. */
const appliedRowsMax = 5_000;
const appliedCharactersMax = 4 * 2 ** 20;

/** The version of the protocol that this node speaks (docs/design/nodes.md). */
export const followProtocol = 1;

/** A node that follows a centre, as its ini file describes it. */
export interface FollowingNode {
  readonly name: string;
  readonly role: 'replica' | 'counter';
  readonly place: string | undefined;
}

/** The centre of a node, with the node's key for it. */
interface Central {
  readonly client: WaymarkClient;
  readonly apikey: string;
  /** Reads the file of the key again, which may have another one now. */
  readonly readKey?: () => Promise<void>;
}

export interface CopyParts {
  readonly store: Store;
  readonly central: Central;
  readonly node: FollowingNode;
}

/** Copies rows in a thread, with a store of its own for the folder; ends when the signal aborts. */
export type CopyInThread = (
  parts: Pick<CopyParts, 'central' | 'node'>,
  folder: string,
  signal: AbortSignal,
) => Promise<void>;

/** The log of the centre, at the moment of an answer. */
interface LogEnd {
  readonly log: string;
  readonly seq: number;
  readonly txn: string;
  readonly generation: number;
}

/**
 * Calls `copy`, which copies rows, until fewer than `min` are missing. Rejects as
 * WaymarkClient.call does, and with `conflict` for another log.
 */
export async function copyMissing(
  parts: CopyParts & { readonly log: Log },
  signal: AbortSignal,
  {
    min,
    copy = () => copyRows(parts, signal),
  }: {
    readonly min: number;
    readonly copy?: () => Promise<void>;
  },
): Promise<void> {
  const { store, central, log } = parts;
  for (;;) {
    const end = await readCentralEnd(parts);
    store.refresh();
    const { id, generation } = store.part(rowLogPart).identity();
    if (end.generation < generation) throw formerCentre(central.client.url);
    if (id !== end.log) throw otherLog();
    const missing = end.seq - store.seq();
    if (missing < min || signal.aborted) return;
    log.info({ rows: missing }, `Copying the log of ${central.client.url}.`);
    await copy();
  }
}

/**
 * Copies the rows that the store lacks now. The next rows arrive while the ones before are written.
 * Rejects as WaymarkClient.lines and RowLog.append do.
 */
export async function copyRows(
  { store, central: { client, apikey }, node }: CopyParts,
  signal: AbortSignal,
): Promise<void> {
  const v = { node: node.name, protocol: followProtocol, ...store.part(rowLogPart).end() };
  const transactions = new Transactions();
  let writing = Promise.resolve();
  const write = async (): Promise<void> => {
    await writing;
    const rows = transactions.take();
    if (rows.length > 0) writing = store.part(rowLogPart).append(rows);
    // The next await of it gets the error.
    writing.catch(() => undefined);
  };
  for await (const rows of client.lines('svc1.log.rows', { v, apikey }, signal)) {
    if (signal.aborted) break;
    transactions.add(rows, false);
    if (transactions.exceeds(atOnce)) await write();
  }
  // The last row ended the log when the centre sent it.
  transactions.add([], !signal.aborted);
  await write();
  await writing;
}

const atOnce = { rows: appliedRowsMax, characters: appliedCharactersMax };

/** The end of the log of the centre. Rejects as WaymarkClient.call does. */
export async function readCentralEnd({
  central: { client, apikey },
  node,
}: Pick<CopyParts, 'central' | 'node'>): Promise<LogEnd> {
  const v = { node: node.name, protocol: followProtocol };
  try {
    const { data } = await client.call('svc1.log.end', { v, apikey });
    return requireEnd(data);
  } catch (error) {
    const isKey = error instanceof Failure && aboutKey.has(error.code);
    throw isKey ? keyFailure(error, client.url, node) : error;
  }
}

const aboutKey: ReadonlySet<string> = new Set(['unauthenticated', 'forbidden']);

/** The failure of a node whose key the centre does not accept. */
function keyFailure(
  { code, message }: Failure,
  url: string,
  { name, role }: FollowingNode,
): Failure {
  const scopes = role === 'counter' ? 'follow,event,record.write' : 'follow';
  return new Failure(
    code,
    `${url} refuses the key of this node (${message.replace(/\.$/, '')}). Make one there by ` +
      `\`waymark key add --name ${name} --scope ${scopes} --node ${name}\`, put it into the file ` +
      'that `key_file` names, and start this server if it does not run.',
  );
}

/** The failure of a request when the log of the centre is another one. */
function otherLog(): Failure {
  return new Failure('conflict', 'The centre has another log than the one that this node copies.');
}

/** The failure of a request to a centre that a promoted node has replaced. */
function formerCentre(url: string): Failure {
  return new Failure(
    'unavailable',
    `${url} is a former centre, which another node has replaced: set \`central\` to that node.`,
  );
}

/** Parses the end of a log. Throws `bad_gateway`. */
export function requireEnd(data: unknown): LogEnd {
  // A centre of an older version does not say the generation.
  const { log, seq, txn, generation = 0 } = isJsonObject(data) ? data : ({} as JsonObject);
  if (typeof log === 'string' && typeof seq === 'number' && typeof txn === 'string') {
    return { log, seq, txn, generation: Number(generation) };
  }
  throw new Failure('bad_gateway', 'The centre did not say where its log ends.');
}

/** A row of the log as text, with the members that show where its transaction begins. */
interface CopiedRow {
  readonly text: string;
  readonly txn: string;
}

const txnMember = /"txn":"([^"\\]*)"/;

/**
 * Collects the rows of a log and gives them back as whole transactions: a reader of a copy must see
 * a transaction as a whole or not at all.
 */
export class Transactions {
  #rows: CopiedRow[] = [];
  /** The number of rows that are parts of complete transactions. */
  #complete = 0;
  #characters = 0;

  /** The rows that it has, and their characters. */
  get size(): { readonly rows: number; readonly characters: number } {
    return { rows: this.#rows.length, characters: this.#characters };
  }

  /**
   * Adds rows that follow the earlier ones. `areLast` says that the last of them ended the log when
   * it was read, so that its transaction is complete.
   */
  add(texts: readonly string[], areLast: boolean): void {
    for (const text of texts) {
      const [, txn = ''] = txnMember.exec(text) ?? [];
      if (txn !== this.#rows.at(-1)?.txn) this.#complete = this.#rows.length;
      this.#rows.push({ text, txn });
      this.#characters += text.length;
    }
    if (areLast) this.#complete = this.#rows.length;
  }

  /** Whether complete transactions have enough rows or characters to write them. */
  exceeds({ rows, characters }: { readonly rows: number; readonly characters: number }): boolean {
    return this.#complete > rows || (this.#complete > 0 && this.#characters > characters);
  }

  /** Removes the complete transactions and returns their rows. */
  take(): readonly string[] {
    const taken = this.#rows.splice(0, this.#complete);
    this.#complete = 0;
    const texts = taken.map(({ text }) => text);
    this.#characters -= texts.reduce((sum, { length }) => sum + length, 0);
    return texts;
  }
}
