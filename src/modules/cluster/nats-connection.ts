import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import {
  AuthorizationError,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  TimeoutError,
  connect,
  credsAuthenticator,
  nkeyAuthenticator,
} from '@nats-io/transport-node';
import { retryUntilAborted } from '../../core/background/retry-loop.ts';
import type { Config } from '../../core/config/config.ts';
import type { Log } from '../../core/report/log.ts';
import { Failure } from '../../core/values/failure.ts';
import { connectMsMax, requestMsMax } from './limits.ts';

/** Messages of other nodes about new entries, over one connection. */
export class WakeUps {
  /** The newest position that a node has announced. */
  newest = 0;
  readonly #failed = new AbortController();
  readonly #forget: () => void;
  #wake: (() => void) | undefined;

  constructor(connection: NatsConnection, parts: WakeUpParts, signal: AbortSignal) {
    const fail = (reason: unknown): void => {
      this.#failed.abort(reason);
      this.#wake?.();
    };
    const subscription = connection.subscribe(wakeUpSubject(parts), {
      callback: (error, message) => {
        if (error !== null) fail(error);
        else this.newest = Math.max(this.newest, positionOf(message.string()));
        this.#wake?.();
      },
    });
    const aborted = (): void => {
      fail(new Error('aborted'));
    };
    const remove = parts.nats.onLost(fail);
    signal.addEventListener('abort', aborted);
    if (signal.aborted) aborted();
    this.#forget = () => {
      remove();
      signal.removeEventListener('abort', aborted);
      if (!connection.isClosed()) subscription.unsubscribe();
    };
  }

  /** Aborts when the connection is lost, or the reader ends. */
  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  /** Resolves at the next message, at a failure, or after a while. */
  async wait(timeoutMs: number): Promise<void> {
    if (this.failed.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }

  close(): void {
    this.#forget();
  }
}

/** The pause after all servers have refused a connection, at first and at most. */
const natsRetryMs = 100;
const natsRetryMsMax = 1_000;

/** The interval of pings; the client closes the connection after two pings without an answer. */
const pingMs = 1_000;

/** After this many requests in a row without an answer, the next server gets a connection. */
const unansweredRequestsMax = 6;

/** The keys of `[cluster]` that a connection needs. */
type NatsSettings = Omit<Config['cluster'], 'name'>;

/** The options of a request to a server. */
interface NatsRequest {
  readonly data?: Uint8Array | string;
  readonly headers?: MsgHdrs;
  readonly timeoutMs?: number;
}

/**
 * A connection to one of several NATS servers, made again when it is lost. The client library
 * could do that itself, but repeats what was sent before, and waits for ever to close a connection
 * whose server has stopped reading.
 */
export class ReconnectingNats {
  readonly #settings: NatsSettings;
  readonly #log: Log;
  readonly #closed = new AbortController();
  readonly #running: Promise<void>;
  #next: number;
  #current: NatsConnection | undefined;
  #problem: Failure | undefined;
  #unanswered = 0;
  /** Called when the current connection is lost, or to give it up. */
  readonly #whenLost = new Set<(error: Error) => void>();
  /** Called when there is a connection, or all servers were tried. */
  readonly #whenTried = new Set<() => void>();

  constructor(settings: NatsSettings, { log }: { readonly log: Log }) {
    this.#settings = settings;
    this.#log = log;
    // The nodes of a cluster share the same list, and need not all begin with the same server.
    this.#next = randomInt(settings.servers.length);
    this.#running = this.#run();
  }

  /** Whether there is a connection, and if not, why. */
  get problem(): Failure | undefined {
    return this.#current === undefined ? (this.#problem ?? unreachableFailure()) : undefined;
  }

  /**
   * Resolves to the current connection, or to the next one. Rejects with `unavailable` after some
   * time, or once `isTried` and all servers have refused; with `forbidden` if they refuse the user.
   */
  async connection(
    timeoutMs: number,
    { isTried = false }: { readonly isTried?: boolean } = {},
  ): Promise<NatsConnection> {
    const timeout = AbortSignal.any([AbortSignal.timeout(timeoutMs), this.#closed.signal]);
    for (;;) {
      if (this.#current !== undefined) return this.#current;
      await new Promise<void>((resolve) => {
        const done = (): void => {
          this.#whenTried.delete(done);
          timeout.removeEventListener('abort', done);
          resolve();
        };
        this.#whenTried.add(done);
        timeout.addEventListener('abort', done);
      });
      if ((timeout.aborted || isTried) && this.problem !== undefined) throw this.problem;
    }
  }

  /** Rejects when the current connection is lost: for what waits for messages of it. */
  onLost(callback: (error: Error) => void): () => void {
    this.#whenLost.add(callback);
    return () => this.#whenLost.delete(callback);
  }

  /** Sends a request and resolves to its answer. Rejects with an error if none comes in time. */
  async request(subject: string, { data, headers, timeoutMs }: NatsRequest = {}): Promise<Msg> {
    const nats = await this.connection(timeoutMs ?? requestMsMax);
    try {
      const options = { timeout: timeoutMs ?? requestMsMax, ...(headers && { headers }) };
      const answer = await nats.request(subject, data, options);
      this.#unanswered = 0;
      return answer;
    } catch (error) {
      // A server that is cut off from the others still answers pings. The answer that there is no
      // responder does not count: the stream has no leader at the moment.
      if (error instanceof TimeoutError) this.#unanswered += 1;
      if (this.#unanswered >= unansweredRequestsMax && nats === this.#current) this.giveUp();
      throw error;
    }
  }

  /** Ends the current connection; the next server gets one. */
  giveUp(): void {
    this.#lose(new Error('no answer'));
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#lose(new Error('closed'));
    await this.#running;
  }

  #lose(error: Error): void {
    for (const lost of this.#whenLost) lost(error);
  }

  async #run(): Promise<void> {
    const { signal } = this.#closed;
    const { servers } = this.#settings;
    /** Uses one server after the other, until all have refused since the last connection. */
    const attempt = async (connected: () => void): Promise<undefined> => {
      for (let refused = 0; refused < servers.length && !signal.aborted; refused += 1) {
        const server = servers[this.#next % servers.length] ?? '';
        this.#next += 1;
        if (await this.#useServer(server, connected)) refused = -1;
      }
      this.#tried();
    };
    const failed = (error: unknown): never => {
      throw error;
    };
    const [minMs, maxMs] = [natsRetryMs, natsRetryMsMax];
    await retryUntilAborted(attempt, { minMs, maxMs, signal, failed });
  }

  /** Uses a server until its connection is lost; resolves to whether there was one. */
  async #useServer(server: string, connected: () => void): Promise<boolean> {
    try {
      const nats = await connect(optionsOf(server, this.#settings));
      if (this.#problem !== undefined) this.#log.info({ server }, 'Connected to NATS again.');
      connected();
      await this.#use(nats);
      const lost = new Failure('unavailable', `The connection to NATS at ${server} was lost.`);
      if (!this.#closed.signal.aborted) this.#report(lost, server);
      return true;
    } catch (error) {
      this.#report(failureOf(error, server), server);
      return false;
    }
  }

  /** Resolves when the connection is lost, given up or closed. */
  async #use(nats: NatsConnection): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const remove = this.onLost(() => {
      resolve(undefined);
    });
    void nats.closed().then(() => {
      resolve(undefined);
    });
    void watch(nats, () => {
      resolve(undefined);
    });
    if (this.#closed.signal.aborted) resolve(undefined);
    [this.#current, this.#problem, this.#unanswered] = [nats, undefined, 0];
    this.#tried();
    await promise;
    remove();
    this.#current = undefined;
    this.#lose(new Error('the connection was lost'));
    // It may take until the operating system gives up the connection.
    nats.close().catch(() => undefined);
  }

  #tried(): void {
    for (const tried of this.#whenTried) tried();
  }

  #report(problem: Failure, server: string): void {
    if (problem.message !== this.#problem?.message) this.#log.warn({ server }, problem.message);
    this.#problem = problem;
  }
}

/** Reports a connection whose server does not answer pings. */
async function watch(nats: NatsConnection, stale: () => void): Promise<void> {
  for await (const { type } of nats.status()) if (type === 'staleConnection') stale();
}

function optionsOf(server: string, settings: NatsSettings): Parameters<typeof connect>[0] {
  const { credentialsFile, user, passwordFile, caFile, certFile, keyFile } = settings;
  const usesTls = server.startsWith('tls:') || caFile !== undefined || certFile !== undefined;
  return {
    servers: [server],
    name: 'waymark',
    reconnect: false,
    ignoreClusterUpdates: true,
    noAsyncTraces: true,
    timeout: connectMsMax,
    pingInterval: pingMs,
    maxPingOut: 2,
    ...(credentialsFile !== undefined && { authenticator: authenticatorOf(credentialsFile) }),
    ...(user !== undefined &&
      passwordFile !== undefined && { user, pass: readFileSync(passwordFile, 'utf8').trim() }),
    ...(usesTls && {
      tls: {
        ...(caFile !== undefined && { ca: readFileSync(caFile, 'utf8') }),
        ...(certFile !== undefined && { cert: readFileSync(certFile, 'utf8') }),
        ...(keyFile !== undefined && { key: readFileSync(keyFile, 'utf8') }),
      },
    }),
  };
}

/** Reads the file again for each connection: it may have been renewed. */
function authenticatorOf(file: string): ReturnType<typeof credsAuthenticator> {
  const content = readFileSync(file);
  const text = content.toString();
  if (text.includes('-----BEGIN NATS USER JWT-----')) return credsAuthenticator(content);
  const seed = text.split(/\s+/).find((word) => word.startsWith('SU')) ?? '';
  return nkeyAuthenticator(Buffer.from(seed));
}

function failureOf(error: unknown, server: string): Failure {
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof AuthorizationError) {
    const message = `NATS at ${server} refuses the user of [cluster]: ${reason}.`;
    return new Failure('forbidden', message, { cause: error });
  }
  const message = `Cannot connect to NATS at ${server}: ${reason}.`;
  return new Failure('unavailable', message, { cause: error, retryAfterSeconds: 5 });
}

function unreachableFailure(): Failure {
  const message = 'The servers of [cluster] cannot be reached.';
  return new Failure('unavailable', message, { retryAfterSeconds: 5 });
}

/** The log that wake-ups are about. */
interface WakeUpParts {
  readonly nats: ReconnectingNats;
  readonly name: string;
  readonly id: string;
}

/** The subject of the messages that tell all nodes of a new entry, outside of the stream. */
function wakeUpSubject({ name, id }: Pick<WakeUpParts, 'name' | 'id'>): string {
  return `${name}.new.${id}`;
}

/** Tells all nodes the position of a new entry, so that they need not poll often. */
export function publishWakeUp(
  connection: NatsConnection,
  log: Pick<WakeUpParts, 'name' | 'id'>,
  position: number,
): void {
  if (!connection.isClosed()) connection.publish(wakeUpSubject(log), String(position));
}

function positionOf(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : 0;
}
