import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { resetConnections, resetWays, startUserSite } from './reset-rig.ts';

suite('a client that resets its connection at once', () => {
  for (const way of resetWays) {
    test(`is no trusted proxy: ${way}`, async (t) => {
      const site = await startUserSite(t);
      // Of so many over TLS, some are reset while their answer is written.
      const count = way === 'tls' ? 400 : 100;
      const { rows, requests } = await resetConnections(site, way, count);
      assert.equal(rows, 0);
      // A connection that is reset before it is accepted is closed unread.
      assert.equal(requests > 0, way !== 'unaccepted', `${requests} requests`);
      assert.doesNotMatch(site.logged(), /"address":"(?!127\.0\.0\.1")/);
    });
  }
});
