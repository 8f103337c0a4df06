import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

/** Opens a paused connection; destroyed after the test. */
export async function openSocket(
  t: TestContext,
  port: number,
  { allowHalfOpen = false } = {},
): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen });
  t.after(() => socket.destroy());
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** Resolves, once the connection has closed, to all bytes that came. */
export async function readToClose(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  await new Promise((resolve) => socket.once('close', resolve));
  return text;
}
