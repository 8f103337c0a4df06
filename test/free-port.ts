import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below those that a system gives to whoever names none, and above those of usual programs. */
const lowest = 10_000;
const highest = 32_767;

/**
 * A port of the loopback that nobody listens to, for what has to know it before it is there, or
 * never is. The system gives it to nobody else meanwhile: tests of other processes run beside.
 */
export async function freePort(): Promise<number> {
  const server = createServer();
  for (;;) {
    const port = randomInt(lowest, highest + 1);
    server.listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
