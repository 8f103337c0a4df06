import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { resetConnections, resetWays, startUserSite } from './reset-rig.ts';

const connectionsReset = 10_000;
/** A handshake of TLS for each takes most of it. */
const resetsMs = 600_000;

suite('many clients that reset their connections at once', () => {
  for (const way of resetWays) {
    test(`are no trusted proxies: ${way}`, { timeout: resetsMs }, async (t) => {
      const site = await startUserSite(t);
      assert.equal((await resetConnections(site, way, connectionsReset)).rows, 0);
    });
  }
});
