import { once } from 'node:events';
import net from 'node:net';
import type { TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';
import { createAttempt, type AttemptResult } from '../../../src/modules/webhooks/attempt.ts';
import { createDialler } from '../../../src/core/outbound/dialler.ts';
import { testDialler } from '../../core/outbound/sources.ts';

/** The key that signs the messages of these tests. */
export const key = Buffer.alloc(32, 7);

/** The options of an attempt; by default, it is a POST of a small message. */
export interface Tried {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

/** Makes attempts through a dialler of the test. */
export function attempts(
  t: TestContext,
  options: Partial<Parameters<typeof createDialler>[0]> = {},
): (origin: string, tried?: Tried) => Promise<AttemptResult> {
  const attempt = createAttempt({
    dialler: testDialler(t, options),
    userAgent: 'Waymark/test',
    now: Date.now,
    monotonicMs: () => performance.now(),
  });
  return (origin, { path = '/hook', method = 'POST', headers = {}, body } = {}) =>
    attempt(
      { url: origin + path, method, headers },
      { id: 'msg_1', body: body ?? Buffer.from('{"type":"webhook.test"}'), keys: [key] },
    );
}

/** A port that does not answer connections: clients wait. */
export async function fullPort(t: TestContext): Promise<number> {
  const worker = new Worker(listenAndSleep, { eval: true });
  const [port] = (await once(worker, 'message')) as [number];
  // They fill the backlog, to which the kernel adds one.
  const waiting = Array.from({ length: 2 }, () => net.connect(port, '127.0.0.1'));
  await Promise.all(waiting.map((socket) => once(socket, 'connect')));
  t.after(async () => {
    for (const socket of waiting) socket.destroy();
    await worker.terminate();
  });
  return port;
}

const listenAndSleep = `
  const { createServer } = require('node:net');
  const { parentPort } = require('node:worker_threads');
  const server = createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
  });
`;
