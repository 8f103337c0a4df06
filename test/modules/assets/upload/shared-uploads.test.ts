import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { uploadsAtOnceMax } from '../../../../src/modules/assets/upload/upload-content.ts';
import { type Answer, startSite } from '../../../harness.ts';

test('slow uploads of one key leave room for those of another', async (t) => {
  const site = await startSite(t);
  const { data } = await site.call('svc1.key.insert', { name: 'author', scopes: ['design'] });
  const { key } = data as { readonly key: string };
  const put = (path: string, apikey: string): string =>
    `PUT /svc1/asset/${path} HTTP/1.1\r\nHost: a\r\napikey: ${apikey}\r\n` +
    'Content-Length: 5\r\nExpect: 100-continue\r\n\r\n';
  const sockets = Array.from({ length: 2 * uploadsAtOnceMax }, () =>
    connect(site.port, '127.0.0.1').on('error', () => undefined),
  );
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  let begun = 0;
  const all = Promise.withResolvers<undefined>();
  for (const [at, socket] of sockets.entries()) {
    socket.write(put(`slow-${at}.txt`, key));
    // An upload that has a place gets 100 (Continue).
    socket.once('data', () => {
      begun += 1;
      if (begun === uploadsAtOnceMax / 2) all.resolve(undefined);
    });
  }
  await all.promise;
  const answer = await fetch(`${site.url}/svc1/asset/quick.txt`, {
    ...{ method: 'PUT', body: 'quick', headers: { apikey: site.adminKey } },
  });
  assert.equal(((await answer.json()) as Answer).data.name, 'quick.txt');
  assert.equal(begun, uploadsAtOnceMax / 2, 'the rest of the key waits');
  // What is given back goes to the next that waits.
  const next = Promise.withResolvers<undefined>();
  for (const socket of sockets) {
    socket.once('data', () => {
      next.resolve(undefined);
    });
  }
  const [first] = sockets;
  first?.write('12345');
  await next.promise;
  first?.destroy();
  if (first !== undefined) await once(first, 'close');
});
