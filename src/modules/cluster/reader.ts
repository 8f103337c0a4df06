import { setTimeout as delay } from 'node:timers/promises';
import type { Msg } from '@nats-io/transport-node';
import type { SharedEntry } from '../../core/log/shared/shared-log.ts';
import { Failure } from '../../core/values/failure.ts';
import { durationText } from '../../core/values/units.ts';
import type { StreamInfo } from './jetstream-api.ts';
import { readAgainMs, requestMsMax } from './limits.ts';
import { fetchMessages, partOf } from './message.ts';
import { type ReconnectingNats, WakeUps } from './nats-connection.ts';
import { type StreamOfLog, requireStream, retentionMsOf } from './stream.ts';

/** How long a reader waits at first for an answer; each further time, twice as long. */
const readerRequestMs = 500;

/** How often a node looks for new messages without a wake-up by another node. */
const pollMs = 500;

/** The pause before messages that others have are fetched again, at first and at most … */
const fetchAgainMs = 1;
const fetchAgainMsMax = 32;

/** … and how long a server may lack them. */
const heldBackMsMax = 2_000;

/** After this time without a message, the node asks the leader whether there are any. */
const idleCheckMs = 4_000;

/**
 * How long the stream may seem shorter than what this node has, because a former leader answers,
 * before the node gives up.
 */
const shorterMsMax = 20_000;

/**
 * After this number of wrong messages in a row, from one server after the other, the node gives up.
 */
const strayMessagesMax = 12;

interface ReaderParts {
  readonly nats: ReconnectingNats;
  readonly name: string;
  readonly id: string;
  /** The position of the newest entry, from the leader. */
  readonly end: () => Promise<number>;
  /** Called with the reason when reading is interrupted, and with undefined when it continues. */
  readonly report: (reason: unknown) => void;
}

/** @inheritdoc SharedLog.entries. */
export async function* readEntries(
  parts: ReaderParts,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<SharedEntry, void> {
  let last = after;
  const shorter = new ShorterStream();
  const isAborted = (): boolean => signal.aborted;
  let [timeoutMs, strays] = [readerRequestMs, 0];
  while (!isAborted()) {
    try {
      shorter.check(await requireStream(parts.nats, { ...parts, timeoutMs }), last);
      parts.report(undefined);
      const from = { sequence: last + 1, timeoutMs };
      for await (const entry of assembled(messagesFrom(parts, from, signal), last)) {
        if (isAborted()) return;
        last = entry.position;
        [timeoutMs, strays] = [readerRequestMs, 0];
        yield entry;
        if (isAborted()) return;
      }
    } catch (error) {
      if (isAborted()) return;
      if (error instanceof Failure && error.code === 'conflict') throw error;
      if (error instanceof StrayMessage) {
        strays += 1;
        if (strays >= strayMessagesMax) throw new Failure('conflict', error.message);
        parts.nats.giveUp();
      }
      parts.report(error);
      timeoutMs = Math.min(2 * timeoutMs, requestMsMax);
    }
    await delay(readAgainMs, undefined, { signal }).catch(() => undefined);
  }
}

/**
 * A message that is not a part of the next entry. A server with a full disk can leave out a message
 * and store the next ones, each with the sequence of the one before; the other servers have the
 * right messages.
 */
class StrayMessage extends Error {}

/** Notices a stream that has lost entries which this node has. */
class ShorterStream {
  #since: number | undefined;

  /** Throws `conflict` once the stream lacks entries for some time: a former leader lacks some. */
  check({ info }: StreamOfLog, last: number): void {
    const { first_seq: first, last_seq: end, num_deleted: deleted = 0 } = info.state;
    const name = String(info.config.name);
    if (deleted > 0) {
      throw new Failure('conflict', `Entries of the stream ${name} were removed from it.`);
    }
    if (first > last + 1 && end > last) throw tooOldFailure(info, last);
    if (end >= last) {
      this.#since = undefined;
      return;
    }
    this.#since ??= performance.now();
    if (performance.now() - this.#since < shorterMsMax) {
      throw new Error(`the stream ends at ${end} instead of ${last}`);
    }
    throw new Failure(
      'conflict',
      `The stream ${name} ends at ${end}, and this node has its entries up to ${last}: the ` +
        'servers have lost data. Restore the servers, so that this node can continue.',
    );
  }
}

/** The failure of a node that lacks entries which the stream no longer has. */
function tooOldFailure(info: StreamInfo, last: number): Failure {
  const { config, state } = info;
  const has = last === 0 ? 'is empty' : `has the entries up to ${last}`;
  const retention = retentionMsOf(info);
  const reason = retention === 0 ? '' : `, which keeps entries for ${durationText(retention)}`;
  return new Failure(
    'conflict',
    `The data folder ${has}, and the stream ${String(config.name)} begins with ` +
      `${state.first_seq}${reason}. ` +
      `Run \`waymark backup\` on another machine of the cluster, and ` +
      'start this one with that folder.',
  );
}

/** Makes entries of messages. Throws StrayMessage for messages that do not follow each other. */
async function* assembled(
  messages: AsyncIterable<Msg>,
  after: number,
): AsyncGenerator<SharedEntry, void> {
  let last = after;
  let pieces: Uint8Array[] = [];
  let id = '';
  for await (const message of messages) {
    const part = partOf(message);
    const { length } = pieces;
    const follows = part?.at === length && part.after === last && (length === 0 || part.id === id);
    if (!follows) {
      const position = last + length + 1;
      throw new StrayMessage(`Message ${position} of the stream is no part of an entry.`);
    }
    ({ id } = part);
    pieces.push(message.data);
    if (pieces.length < part.count) continue;
    const position = last + pieces.length;
    // Copy the data: it is a view of a larger buffer of the socket, which would otherwise stay in
    // memory.
    yield { after: last, position, data: Buffer.concat(pieces) };
    [last, pieces] = [position, []];
  }
}

/**
 * The messages of the stream from a sequence, none left out. Throws when the connection or the
 * server is lost, or when the server does not have what others have; the caller then begins again.
 */
async function* messagesFrom(
  parts: ReaderParts,
  { sequence, timeoutMs }: { readonly sequence: number; readonly timeoutMs: number },
  signal: AbortSignal,
): AsyncGenerator<Msg, void> {
  const { nats, name } = parts;
  const connection = await nats.connection(requestMsMax);
  const wakeUps = new WakeUps(connection, parts, signal);
  let [next, idleSince, againMs] = [sequence, performance.now(), fetchAgainMs];
  try {
    for (;;) {
      const from = { name, sequence: next, timeoutMs };
      const messages = await fetchMessages(connection, from, wakeUps.failed);
      for (const message of messages) {
        next += 1;
        yield message;
      }
      if (messages.length > 0) [idleSince, againMs] = [performance.now(), fetchAgainMs];
      const idleMs = performance.now() - idleSince;
      if (wakeUps.newest >= next) {
        // The replica of this server learns of the entry a moment after the leader.
        if (idleMs > heldBackMsMax) throw heldBack(nats);
        if (messages.length === 0) await delay(againMs);
        againMs = Math.min(2 * againMs, fetchAgainMsMax);
      } else if (messages.length === 0) {
        await wakeUps.wait(pollMs);
        if (idleMs < idleCheckMs) continue;
        idleSince = performance.now();
        if ((await parts.end()) >= next) wakeUps.newest = next;
      }
    }
  } finally {
    wakeUps.close();
  }
}

/** The error for a server that is cut off from the others; the next one gets a connection. */
function heldBack(nats: ReconnectingNats): Error {
  nats.giveUp();
  return new Error('the server lacks messages that others have');
}
