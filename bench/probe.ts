import { Agent, get, type IncomingMessage } from 'node:http';
import { Agent as TlsAgent, get as getTls } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import type { Child } from './processes.ts';

/** The response of a server to one request. */
export interface Answer {
  readonly status: number;
  readonly contentBytes: number;
  /** Bytes of the whole response on the connection, with its header. */
  readonly wireBytes: number;
  readonly etag: string | undefined;
}

const readyTimeoutMs = 20_000;
const pollMs = 2;

/** Sends one request on a new keep-alive connection, and closes it. */
export async function requestOnce(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<Answer> {
  const isTls = url.startsWith('https:');
  const agent = isTls
    ? new TlsAgent({ keepAlive: true, rejectUnauthorized: false })
    : new Agent({ keepAlive: true });
  try {
    return await new Promise((resolve, reject) => {
      (isTls ? getTls : get)(url, { agent, headers: { ...headers } }, (message) => {
        readAnswer(message, resolve, reject);
      }).once('error', reject);
    });
  } finally {
    agent.destroy();
  }
}

/**
 * Requests the URL repeatedly until its status is 200; rejects if the process ends before that, and
 * after 20 s.
 */
export async function waitUntilReady(url: string, child: Child): Promise<void> {
  const died = child.ended.then((how): never => {
    throw new Error(how);
  });
  await Promise.race([died, poll(url)]);
}

async function poll(url: string): Promise<void> {
  const deadline = performance.now() + readyTimeoutMs;
  let last = 'nothing listens';
  while (performance.now() < deadline) {
    try {
      const { status } = await requestOnce(url, {});
      if (status === 200) return;
      last = `status ${status}`;
    } catch (error) {
      last = String(error);
    }
    await wait(pollMs);
  }
  throw new Error(`${url} did not answer with 200 within ${readyTimeoutMs / 1000} s: ${last}`);
}

function readAnswer(
  message: IncomingMessage,
  resolve: (answer: Answer) => void,
  reject: (error: Error) => void,
): void {
  // After its end, a message has no `socket` any more.
  const { socket } = message;
  let contentBytes = 0;
  message.on('data', (chunk: Buffer) => {
    contentBytes += chunk.length;
  });
  message.once('error', reject);
  message.once('end', () => {
    resolve({
      status: message.statusCode ?? 0,
      contentBytes,
      wireBytes: socket.bytesRead,
      etag: message.headers.etag,
    });
  });
}
