import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { retryUntilAborted } from '../../core/background/retry-loop.ts';
import { withoutControls } from '../../core/report/escape.ts';
import { Failure } from '../../core/values/failure.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { type ApiSocket, openApiSocket } from '../peers/api-socket.ts';

/**
 * Writes each change as a line of JSON, after a seq. The changes of all tables come in the order of
 * seq, so one position is enough for all.
 */
export class LineTarget implements FollowTarget {
  readonly #out: Writable;
  #seq: number;

  constructor(out: Writable, seq: number) {
    [this.#out, this.#seq] = [out, seq];
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  position(): Promise<number> {
    return Promise.resolve(this.#seq);
  }

  needsSchema(): boolean {
    return false;
  }

  update(): Promise<void> {
    return Promise.resolve();
  }

  async apply(packets: readonly RowPacket[]): Promise<void> {
    const lines = packets.map((packet) => `${withoutControls(JSON.stringify(packet))}\n`);
    if (!this.#out.write(lines.join(''))) await once(this.#out, 'drain');
    this.#seq = Math.max(this.#seq, ...packets.map(({ seq }) => seq));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** How often the schema of a table is read again: it may change without a change of a row. */
const schemaMs = 5_000;

/** How long to wait before the next attempt to connect, at first and at most. */
const followRetryMs = 500;
const followRetryMsMax = 30_000;

/** A change of a row, as record.subscribe sends it. */
export interface RowPacket {
  readonly seq: number;
  readonly table: string;
  readonly id: string;
  /** The row after the change; null if it no longer exists. */
  readonly record: JsonObject | null;
}

/** A table, and the JSON Schema of its rows. */
export interface FollowedTable {
  readonly name: string;
  readonly schema: JsonObject;
}

/**
 * The target of changes of rows. All methods may reject with `unavailable`: the caller then opens
 * it again.
 */
export interface FollowTarget {
  /** Connects, also again after a failure. */
  open(): Promise<void>;
  /** Begins with a table; resolves to the seq after which it needs the changes. */
  position(table: FollowedTable): Promise<number>;
  /** Whether a change needs the present schema of its table before it can be applied. */
  needsSchema(packet: RowPacket): boolean;
  /** Adapts a table to its schema. */
  update(table: FollowedTable): Promise<void>;
  /** Applies changes, in the order of seq, and moves the positions of their tables. */
  apply(packets: readonly RowPacket[]): Promise<void>;
  close(): Promise<void>;
}

/** The reports of a follower. */
export interface FollowReport {
  /** After changes were applied: how many so far, and the seq of the last one. */
  applied(changes: number, seq: number): void;
  /** After a failure: why, and when it tries again. */
  retrying(why: string, delayMs: number): void;
}

/** The options of followTables. */
interface FollowOptions {
  /** `http(s)://host[:port][/base]` of the server. */
  readonly url: string;
  readonly apikey: string | undefined;
  /** The names of the tables. */
  readonly tables: readonly string[];
  readonly target: FollowTarget;
  readonly report: FollowReport;
  readonly signal: AbortSignal;
}

/**
 * Copies each change of the rows of some tables to a target, from its position on, until the signal
 * aborts. A lost connection is made again. Rejects with the failure of the server or target if
 * another attempt would repeat it, and with any failure of the first attempt to connect.
 */
export async function followTables(options: FollowOptions): Promise<void> {
  const { target, report, signal } = options;
  let [applied, hasConnected] = [0, false];
  const attempt = async (succeeded: () => void): Promise<undefined> => {
    await target.open();
    await followOnce(options, {
      connected() {
        hasConnected = true;
        succeeded();
      },
      applied(changes, seq) {
        applied += changes;
        report.applied(applied, seq);
      },
    });
  };
  const failed = (error: unknown, pauseMs: number): void => {
    const isPassing = error instanceof Failure && error.code === 'unavailable' && hasConnected;
    if (!isPassing) throw error;
    report.retrying(error.message, pauseMs);
  };
  const [minMs, maxMs] = [followRetryMs, followRetryMsMax];
  await retryUntilAborted(attempt, { minMs, maxMs, signal, failed });
  await target.close();
}

/** A function, because the signal may abort during an await. */
function isStopped({ aborted }: AbortSignal): boolean {
  return aborted;
}

interface Progress {
  connected(): void;
  applied(changes: number, seq: number): void;
}

/** Follows over one websocket, until it ends. */
async function followOnce(
  { url, apikey, tables, target, signal }: FollowOptions,
  progress: Progress,
): Promise<void> {
  const socket = await openApiSocket({ url: `${url}/svc1/ws`, apikey, signal });
  try {
    for (const name of tables) {
      const from_seq = await target.position(await followedTable(socket, name));
      await socket.subscribe('svc1.record.subscribe', { table: name, from_seq });
    }
    progress.connected();
    let schemasReadMs = performance.now();
    while (!isStopped(signal)) {
      const received = await socket.next(schemaMs);
      const packets = received.map(({ data }) => data as unknown as RowPacket);
      const isDue = performance.now() - schemasReadMs >= schemaMs;
      const changed = packets.filter((packet) => target.needsSchema(packet));
      const outdated = isDue ? tables : new Set(changed.map(({ table }) => table));
      for (const name of outdated) await target.update(await followedTable(socket, name));
      if (isDue) schemasReadMs = performance.now();
      if (packets.length === 0) continue;
      await target.apply(packets);
      progress.applied(packets.length, packets.at(-1)?.seq ?? 0);
    }
  } finally {
    socket.close();
  }
}

async function followedTable(socket: ApiSocket, name: string): Promise<FollowedTable> {
  const { schema } = await socket.call('svc1.record.schema', { table: name });
  return { name, schema: (schema ?? {}) as JsonObject };
}
