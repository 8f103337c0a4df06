import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the range of ephemeral ports, and above the ports of usual programs. */
const lowest = 10_000;
const highest = 32_767;

/**
 * A free port of the loopback, for servers whose port must be known before they start, or that
 * never start. It is outside of the ephemeral range, so tests in other processes do not get it by
 * port 0.
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
