import { setTimeout as delay } from 'node:timers/promises';
import { createInbox, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { Failure } from '../model/failure.ts';
import type { SharedEntry } from '../store/shared/shared-log.ts';
import { callJetStream } from './jetstream-api.ts';
import {
  heartbeatMs,
  idleCheckMs,
  pullBytesMax,
  pullMessagesMax,
  pullMs,
  readAgainMs,
  readerUnusedMs,
  requestMsMax,
  shorterMsMax,
  silenceMsMax,
} from './limits.ts';
import { partOf, sequenceOf } from './message.ts';
import type { ReconnectingNats } from './nats-connection.ts';
import { requireStream, type StreamOfLog } from './stream.ts';

/** The dependencies of a reader. */
interface ReaderParts {
  readonly nats: ReconnectingNats;
  readonly name: string;
  readonly id: string;
  readonly newId: () => string;
  /** The position of the newest entry, from the leader. */
  readonly end: () => Promise<number>;
  /** Called with the reason when reading is interrupted, and without when it goes on. */
  readonly report: (reason: unknown) => void;
}

/** SharedLog.entries: see there. */
export async function* readEntries(
  parts: ReaderParts,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<SharedEntry, void> {
  let last = after;
  const shorter = new ShorterStream();
  const isAborted = (): boolean => signal.aborted;
  while (!isAborted()) {
    try {
      shorter.check(await requireStream(parts.nats, parts), last);
      parts.report(undefined);
      for await (const entry of assembled(messagesFrom(parts, last + 1, signal), last)) {
        if (isAborted()) return;
        last = entry.position;
        yield entry;
        if (isAborted()) return;
      }
    } catch (error) {
      if (isAborted()) return;
      if (error instanceof Failure && error.code === 'conflict') throw error;
      parts.report(error);
    }
    await delay(readAgainMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Notices a stream that has lost entries which this node has. */
class ShorterStream {
  #since: number | undefined;

  /** Throws `conflict` once the stream lacks entries for some time: a former leader lacks some. */
  check({ info: { config, state } }: StreamOfLog, last: number): void {
    const { first_seq: first, last_seq: end, num_deleted: deleted = 0 } = state;
    const name = String(config.name);
    if (deleted > 0 || (first > last + 1 && end > last)) {
      throw new Failure('conflict', `Entries of the stream ${name} were removed from it.`);
    }
    if (end >= last) {
      this.#since = undefined;
      return;
    }
    this.#since ??= performance.now();
    if (performance.now() - this.#since < shorterMsMax) throw new Error('the stream is shorter');
    throw new Failure(
      'conflict',
      `The stream ${name} ends at ${end}, and this node has its entries up to ${last}: the ` +
        'servers have lost data. Restore them before this node goes on.',
    );
  }
}

/** Makes entries of messages. Throws `conflict` for messages that do not follow each other. */
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
      throw new Failure('conflict', `Message ${position} of the stream is no part of an entry.`);
    }
    ({ id } = part);
    pieces.push(message.data);
    if (pieces.length < part.count) continue;
    const position = last + pieces.length;
    // The data is a part of what the socket has received, which an entry need not keep in memory.
    yield { after: last, position, data: Buffer.concat(pieces) };
    [last, pieces] = [position, []];
  }
}

/**
 * The messages of the stream from a sequence, none left out. Throws when the connection or the
 * server is lost, or is silent; the caller then begins again.
 */
async function* messagesFrom(
  parts: ReaderParts,
  sequence: number,
  signal: AbortSignal,
): AsyncGenerator<Msg, void> {
  const { nats, name, newId } = parts;
  const connection = await nats.connection(requestMsMax);
  const inbox = new Inbox(connection, nats, signal);
  const consumer = newId();
  try {
    await createConsumer(parts, consumer, sequence);
    let next = sequence;
    for (;;) {
      inbox.pull(name, consumer);
      for (let pulled = 0; pulled < pullMessagesMax; pulled += 1) {
        const message = await inbox.next(async () => {
          if ((await parts.end()) >= next) throw new Error('the server holds messages back');
        });
        if (message === 'ended') break;
        if (sequenceOf(message) !== next) throw new Error(`message ${next} is missing`);
        next += 1;
        yield message;
      }
    }
  } finally {
    inbox.close();
    // Otherwise the server removes the consumer when it was unused for some time.
    if (!connection.isClosed()) connection.publish(`$JS.API.CONSUMER.DELETE.${name}.${consumer}`);
  }
}

async function createConsumer(
  { nats, name }: ReaderParts,
  consumer: string,
  sequence: number,
): Promise<void> {
  await callJetStream(nats, `CONSUMER.CREATE.${name}.${consumer}`, {
    stream_name: name,
    action: 'create',
    config: {
      name: consumer,
      ...{ deliver_policy: 'by_start_sequence', opt_start_seq: sequence },
      ...{ ack_policy: 'none', replay_policy: 'instant', mem_storage: true, num_replicas: 1 },
      inactive_threshold: nanoseconds(readerUnusedMs),
    },
  });
}

/** What a server sends for the pull requests of one consumer. */
class Inbox {
  readonly #connection: NatsConnection;
  readonly #subject = createInbox();
  readonly #subscription: ReturnType<NatsConnection['subscribe']>;
  readonly #forget: () => void;
  #messages: Msg[] = [];
  /** The next one of them that is taken. */
  #at = 0;
  #error: Error | undefined;
  #heard = performance.now();
  #idle = performance.now();
  #wake: (() => void) | undefined;

  constructor(connection: NatsConnection, nats: ReconnectingNats, signal: AbortSignal) {
    this.#connection = connection;
    this.#subscription = connection.subscribe(this.#subject, {
      callback: (error, message) => {
        this.#heard = performance.now();
        if (error !== null) this.#error = error;
        else this.#messages.push(message);
        this.#wake?.();
      },
    });
    const fail = (error: Error): void => {
      this.#error ??= error;
      this.#wake?.();
    };
    const aborted = (): void => {
      fail(new Error('aborted'));
    };
    const remove = nats.onLost(fail);
    signal.addEventListener('abort', aborted);
    if (signal.aborted) aborted();
    this.#forget = () => {
      remove();
      signal.removeEventListener('abort', aborted);
    };
  }

  close(): void {
    this.#forget();
    if (!this.#connection.isClosed()) this.#subscription.unsubscribe();
  }

  /** Asks the server for more messages. */
  pull(stream: string, consumer: string): void {
    this.#heard = performance.now();
    const request = {
      ...{ batch: pullMessagesMax, max_bytes: pullBytesMax },
      ...{ expires: nanoseconds(pullMs), idle_heartbeat: nanoseconds(heartbeatMs) },
    };
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    this.#connection.publish(subject, JSON.stringify(request), { reply: this.#subject });
  }

  /**
   * Resolves to the next message, or to `ended` if the server has none left for the request.
   * `idle` is called when there is none for some time. Throws for a silent server.
   */
  async next(idle: () => Promise<void>): Promise<Msg | 'ended'> {
    for (;;) {
      const message = this.#messages[this.#at];
      if (message === undefined) {
        await this.#more(idle);
        continue;
      }
      this.#at += 1;
      if (this.#at === this.#messages.length) [this.#messages, this.#at] = [[], 0];
      const status = message.headers?.code ?? 0;
      if (status === 0) {
        this.#idle = performance.now();
        return message;
      }
      // 100 is a heartbeat; 404, 408 and 409 end a request; 503 means that nobody has taken it.
      if (status === 503) throw new Error('the consumer is gone');
      if (status !== 100) {
        const text = message.headers?.description ?? '';
        if (/Consumer Deleted|Leadership Change|Server Shutdown/i.test(text)) throw new Error(text);
        return 'ended';
      }
    }
  }

  /** Resolves when there is a message, or after a while. */
  async #more(idle: () => Promise<void>): Promise<void> {
    if (this.#error !== undefined) throw this.#error;
    const now = performance.now();
    if (now - this.#heard > silenceMsMax) throw new Error('the server is silent');
    if (now - this.#idle > idleCheckMs) {
      this.#idle = now;
      await idle();
      if (this.#at < this.#messages.length) return;
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, heartbeatMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}

function nanoseconds(ms: number): number {
  return ms * 1_000_000;
}
