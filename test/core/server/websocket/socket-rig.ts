import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { WebSocket } from 'ws';

/** Opcodes of RFC 6455 §5.2. */
export const opcodes = {
  continuation: 0,
  text: 1,
  binary: 2,
  close: 8,
  ping: 9,
  pong: 10,
} as const;

/** A received frame. */
export interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** Makes a frame of a client (RFC 6455 §5.2), valid or with the given errors. */
export function frame(
  opcode: number,
  payload: Buffer | string,
  { fin = true, rsv = 0, masked = true } = {},
): Buffer {
  const bytes = Buffer.from(payload);
  const first = (fin ? 0x80 : 0) | (rsv << 4) | opcode;
  const mark = masked ? 0x80 : 0;
  const head =
    bytes.length < 126
      ? Buffer.from([first, mark | bytes.length])
      : Buffer.from([first, mark | 126, bytes.length >> 8, bytes.length & 255]);
  if (!masked) return Buffer.concat([head, bytes]);
  const mask = randomBytes(4);
  const maskedBytes = bytes.map((byte, at) => byte ^ (mask[at % 4] ?? 0));
  return Buffer.concat([head, mask, maskedBytes]);
}

/** Makes the handshake request of a websocket; `undefined` removes a field. */
export function upgradeRequest(
  fields: Readonly<Record<string, string | undefined>> = {},
  line = 'GET /svc1/ws HTTP/1.1',
): string {
  const all: Record<string, string | undefined> = {
    Host: 'localhost',
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
    ...fields,
  };
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}\r\n`],
  );
  return `${line}\r\n${lines.join('')}\r\n`;
}

/** A websocket client that sends arbitrary bytes. */
export interface RawClient {
  send(bytes: Buffer): void;
  /** Resolves to the next frame of the server; rejects when the connection ends before. */
  next(): Promise<Frame>;
  /** Resolves to the code of the server's close frame once the connection has ended. */
  readonly closed: Promise<number | undefined>;
}

/** Opens a websocket over its own socket. */
export async function openRaw(t: Pick<TestContext, 'after'>, port: number): Promise<RawClient> {
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('error', () => undefined);
  const frames: Frame[] = [];
  let waiting: ((frame: Frame) => void) | undefined;
  let held = Buffer.alloc(0);
  let opened: (() => void) | undefined;
  let code: number | undefined;
  socket.on('data', (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
    if (opened !== undefined) {
      const end = held.indexOf('\r\n\r\n');
      if (end === -1) return;
      held = held.subarray(end + 4);
      opened();
      opened = undefined;
    }
    for (let read = readFrame(held); read !== undefined; read = readFrame(held)) {
      held = held.subarray(read.bytes);
      if (read.frame.opcode === opcodes.close) code = read.frame.payload.readUInt16BE();
      if (waiting === undefined) frames.push(read.frame);
      else waiting(read.frame);
      waiting = undefined;
    }
  });
  const closed = once(socket, 'close').then(() => code);
  socket.write(upgradeRequest());
  await new Promise<void>((resolve) => {
    opened = resolve;
  });
  return {
    closed,
    send: (bytes) => socket.write(bytes),
    next: () =>
      new Promise((resolve, reject) => {
        const first = frames.shift();
        if (first !== undefined) resolve(first);
        else waiting = resolve;
        void closed.then(() => {
          reject(new Error('the connection has ended'));
        });
      }),
  };
}

function readFrame(held: Buffer): { readonly frame: Frame; readonly bytes: number } | undefined {
  const [first, second] = held;
  if (first === undefined || second === undefined) return undefined;
  const at = second === 126 ? 4 : 2;
  if (held.length < at) return undefined;
  const bytes = at + (second === 126 ? held.readUInt16BE(2) : second);
  if (held.length < bytes) return undefined;
  return { frame: { opcode: first & 15, payload: held.subarray(at, bytes) }, bytes };
}

/** A source that answers when the test says so. */
export interface HeldSource {
  readonly url: string;
  /** The number of requests that wait for an answer. */
  readonly waiting: readonly string[];
  /** Resolves when a number of requests are waiting. */
  reached(count: number): Promise<void>;
  /** Answers all waiting requests, and later ones at once. */
  release(): void;
}

/** Starts a source for content.fetch that delays its answers. */
export async function startHeldSource(t: Pick<TestContext, 'after'>): Promise<HeldSource> {
  const responses: ServerResponse[] = [];
  const waiting: string[] = [];
  let isHeld = true;
  const server = createServer((request, response) => {
    if (!isHeld) {
      response.end(request.url);
      return;
    }
    responses.push(response);
    waiting.push(request.url ?? '');
    server.emit('held');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    waiting,
    async reached(count) {
      while (waiting.length < count) await once(server, 'held');
    },
    release() {
      isHeld = false;
      for (const [at, response] of responses.entries()) response.end(waiting[at]);
      waiting.length = 0;
    },
  };
}

/** Resolves to the code and reason of the close. */
export async function closing(websocket: WebSocket): Promise<readonly [number, string]> {
  const [code, reason] = (await once(websocket, 'close')) as [number, Buffer];
  return [code, reason.toString()];
}
