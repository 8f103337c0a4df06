import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { resetConnections, resetWays, startUserSite } from './reset-rig.ts';

suite('10,000 clients that reset their connections at once', () => {
  for (const way of resetWays) {
    test(`are no trusted proxies: ${way}`, async (t) => {
      const site = await startUserSite(t);
      assert.equal((await resetConnections(site, way, 10_000)).rows, 0);
    });
  }
});
