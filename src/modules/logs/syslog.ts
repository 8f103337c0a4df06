import { type Socket as DatagramSocket, createSocket } from 'node:dgram';
import { type LookupOneOptions, lookup } from 'node:dns';
import { type Socket, connect, isIP, isIPv6 } from 'node:net';
import type { LeveledLine, LeveledSink } from '../../core/report/line-formats.ts';
import { syslogMessageBytesMax } from '../../core/report/limits.ts';
import { MIB } from '../../core/values/units.ts';
import { type SyslogAddress, type SyslogOrigin, syslogMessage } from './syslog-message.ts';

/** The wait before a further attempt to connect to syslog, and how long its last lines may take. */
const syslogRetryMs = 1_000;
const syslogEndMs = 1_000;

/** How long the address of the receiver of datagrams is used before its name is looked up again. */
const syslogAddressMs = 30_000;

/** Datagrams that may wait, before further ones are dropped. */
const syslogWaitingMessagesMax = 1_000;

/** Bytes of lines that may wait for syslog, before further ones are dropped. */
const syslogWaitingBytesMax = MIB;

/** Bytes of them for what comes before the text. */
const syslogHeadBytesMax = 384;

/** The surroundings of a sender. */
interface SyslogParts {
  readonly origin: SyslogOrigin;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Gets the first of several failures in a row. */
  readonly failed: (error: Error) => void;
}

/**
 * Opens a sender of log lines to syslog: as datagrams (RFC 5426), or over TCP, where each message
 * has its length before it (RFC 6587 §3.4.1), or over a unix socket of streams, where it ends in a
 * line end. It waits for no receiver: lines that one cannot take are dropped.
 */
export function openSyslog(address: SyslogAddress, parts: SyslogParts): LeveledSink {
  return address.kind === 'udp'
    ? new DatagramSender(address, parts)
    : new StreamSender(address, parts);
}

/** The longest line in a message. */
const lineBytesMax = syslogMessageBytesMax - syslogHeadBytesMax;

class DatagramSender implements LeveledSink {
  readonly lineBytesMax = lineBytesMax;
  readonly #address: { readonly host: string; readonly port: number };
  readonly #parts: SyslogParts;
  #socket: DatagramSocket | undefined;
  #unsent = 0;
  #sent: () => void = () => undefined;
  #isFailing = false;

  constructor(address: { readonly host: string; readonly port: number }, parts: SyslogParts) {
    this.#address = address;
    this.#parts = parts;
  }

  /** Messages wait for the address of the receiver, and for the system to take them. */
  get writableNeedDrain(): boolean {
    return this.#unsent >= syslogWaitingMessagesMax;
  }

  write(lines: readonly LeveledLine[]): void {
    const { host, port } = this.#address;
    const { origin, now } = this.#parts;
    this.#socket ??= this.#open();
    for (const line of lines) {
      if (this.writableNeedDrain) return;
      const message = syslogMessage(line, origin, now());
      this.#unsent += 1;
      this.#socket.send(message, port, host, (error) => {
        this.#unsent -= 1;
        if (error) this.#fail(error);
        else this.#isFailing = false;
        if (this.#unsent === 0) this.#sent();
      });
    }
  }

  async end(): Promise<void> {
    const sent = new Promise<void>((resolve) => {
      this.#sent = resolve;
    });
    if (this.#unsent > 0) await sent;
    this.#socket?.close();
    this.#socket = undefined;
  }

  #open(): DatagramSocket {
    const { host } = this.#address;
    const type = isIPv6(host) ? 'udp6' : 'udp4';
    const named = isIP(host) === 0 && { lookup: rememberedLookup(this.#parts) };
    const socket = createSocket({ type, ...named }).unref();
    return socket.on('error', (error) => {
      this.#fail(error);
    });
  }

  #fail(error: Error): void {
    if (!this.#isFailing) this.#parts.failed(error);
    this.#isFailing = true;
  }
}

type LookupCallback = (
  error: NodeJS.ErrnoException | null,
  address: string,
  family: number,
) => void;

/**
 * Finds the address of a host once in a while for all messages. Node asks for each datagram, and a
 * name server that does not answer would hold up the threads that read files, too.
 */
function rememberedLookup({
  now,
}: Pick<SyslogParts, 'now'>): (
  host: string,
  options: LookupOneOptions,
  callback: LookupCallback,
) => void {
  let found: { readonly answer: Parameters<LookupCallback>; readonly untilMs: number } | undefined;
  let waiting: LookupCallback[] | undefined;
  return (host, options, callback) => {
    if (found !== undefined && now() < found.untilMs) {
      callback(...found.answer);
      return;
    }
    if (waiting !== undefined) {
      waiting.push(callback);
      return;
    }
    const callbacks = [callback];
    waiting = callbacks;
    lookup(host, options, (...answer) => {
      waiting = undefined;
      const forMs = answer[0] === null ? syslogAddressMs : syslogRetryMs;
      found = { answer, untilMs: now() + forMs };
      for (const one of callbacks) one(...answer);
    });
  };
}

class StreamSender implements LeveledSink {
  readonly lineBytesMax = lineBytesMax;
  readonly #address: SyslogAddress;
  readonly #parts: SyslogParts;
  #socket: Socket | undefined;
  #retryAtMs = -Infinity;
  #isFailing = false;

  constructor(address: SyslogAddress, parts: SyslogParts) {
    this.#address = address;
    this.#parts = parts;
  }

  get writableNeedDrain(): boolean {
    if (this.#socket === undefined) return this.#parts.now() < this.#retryAtMs;
    return this.#socket.writableLength > syslogWaitingBytesMax;
  }

  write(lines: readonly LeveledLine[]): void {
    if (this.writableNeedDrain) return;
    const { origin, now } = this.#parts;
    this.#socket ??= this.#open();
    const isCounted = this.#address.kind === 'tcp';
    for (const line of lines) {
      const message = syslogMessage(line, origin, now());
      if (isCounted) this.#socket.write(`${message.length} `);
      this.#socket.write(message);
      if (!isCounted) this.#socket.write('\n');
    }
  }

  async end(): Promise<void> {
    const socket = this.#socket;
    if (socket === undefined) return;
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const timer = setTimeout(() => socket.destroy(), syslogEndMs);
    socket.end();
    await closed;
    clearTimeout(timer);
  }

  #open(): Socket {
    const address = this.#address;
    const socket = connect(address.kind === 'unix' ? { path: address.path } : address);
    socket.unref().resume();
    socket.once('connect', () => {
      this.#isFailing = false;
    });
    const over = (): void => {
      if (this.#socket === socket) this.#socket = undefined;
    };
    socket.on('error', (error: NodeJS.ErrnoException) => {
      over();
      this.#retryAtMs = this.#parts.now() + syslogRetryMs;
      if (!this.#isFailing) this.#parts.failed(explained(error));
      this.#isFailing = true;
    });
    return socket.once('close', over);
  }
}

/** Says what to do about a unix socket of datagrams, such as /dev/log, which Node cannot open. */
function explained(error: NodeJS.ErrnoException): Error {
  if (error.code !== 'EPROTOTYPE') return error;
  const advice = 'it is a socket of datagrams, which Node.js cannot open: use udp:// or tcp://';
  return new Error(advice, { cause: error });
}
