import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { resetConnections, resetWays, startUserSite } from './reset-rig.ts';

suite('many clients that reset their connections at once', () => {
  for (const way of resetWays) {
    test(`are no trusted proxies: ${way}`, async (t) => {
      const site = await startUserSite(t);
      // The client in the test takes more resets in HTTP/2 without TLS for errors of its own.
      const count = way === 'h2c' ? 100 : 10_000;
      assert.equal((await resetConnections(site, way, count)).rows, 0);
    });
  }
});
