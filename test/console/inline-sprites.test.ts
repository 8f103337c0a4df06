import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { inlineSprites } from '../../console/src/components/inline-sprites.ts';

const page = (name: string): string => `<svg><use href="/${name}#lamp"></use></svg>`;

test('a preview has the sprites of its origin inside, and reads no more of one than 1 MB', async (t) => {
  const [text, chunk] = ['<svg><symbol id="lamp"/></svg>', Buffer.alloc(64 * 1024, 'x')];
  let sent = 0;
  const server = createServer((request, response) => {
    if (request.url === '/lamp.svg') response.end(text);
    else if (request.url !== '/endless.svg') response.writeHead(404).end(text);
    else {
      response.write(text);
      const more = (): void => {
        do sent += chunk.length;
        while (response.write(chunk));
      };
      response.on('drain', more).on('close', () => server.emit('left'));
      more();
    }
  }).listen(0, '127.0.0.1');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  // The console runs in a browser, whose origin it compares.
  Object.defineProperty(globalThis, 'location', { value: { origin }, configurable: true });
  t.after(() => Reflect.deleteProperty(globalThis, 'location'));

  assert.equal(
    await inlineSprites(page('lamp.svg'), origin),
    '<svg><use href="#sprite-0-lamp"></use></svg>' +
      '<svg width="0" height="0" aria-hidden="true"><symbol id="sprite-0-lamp"/></svg>',
  );
  assert.equal(await inlineSprites(page('none.svg'), origin), page('none.svg'));
  const left = once(server, 'left');
  assert.equal(await inlineSprites(page('endless.svg'), origin), page('endless.svg'));
  await left;
  assert.ok(sent < 64 * 2 ** 20, `${sent} bytes`);
});
