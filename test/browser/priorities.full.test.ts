import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { createAuthority } from '../certificates.ts';
import { startSite } from '../harness.ts';
import { oneBrowser } from './browser.ts';

const openTab = oneBrowser();
const pictures = 97;
/** Random, so that compression changes little. */
const pictureBytes = 60_000;
/** How many pictures may end before the others: those that the network has already taken. */
const sentBeforeMax = 40;

/** A page that names its pictures first, and what it needs most at its end. */
const page =
  '<!doctype html><title>A hundred files</title><body>' +
  Array.from({ length: pictures }, (_, at) => `<img alt="" src="/${at}.svg">`).join('') +
  '<script src="/late.js" defer></script><link rel="stylesheet" href="/style.css">' +
  '<link rel="preload" as="font" href="/font.woff2" crossorigin>' +
  '<p>Text</p>';

const needed = ['style.css', 'late.js', 'font.woff2'];

/** What the gate passes besides the page, until Chromium has asked for all files. */
const handshakeBytes = 8_000;

function picture(): string {
  const head = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/><!--';
  return `${head}${randomBytes(pictureBytes).toString('base64')}-->`;
}

/**
 * Starts a TCP proxy before a port: it passes to its clients as many bytes as `allow` has added so
 * far. Meanwhile the server can write no more than the sockets take.
 */
async function startGate(t: TestContext, port: number) {
  let left = 0;
  const servers = new Set<Socket>();
  const gate = createServer((client) => {
    const server = connect(port, '127.0.0.1');
    servers.add(server);
    const close = (): void => {
      servers.delete(server);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on('error', close).on('close', close);
    client.pipe(server);
    server.on('data', (bytes: Buffer) => {
      client.write(bytes);
      left -= bytes.length;
      if (left <= 0) server.pause();
    });
  });
  gate.listen(0, '127.0.0.1');
  await once(gate, 'listening');
  t.after(() => gate.close());
  return {
    port: (gate.address() as AddressInfo).port,
    allow(bytes: number) {
      left += bytes;
      if (left > 0) for (const server of servers) server.resume();
    },
  };
}

test('Chromium gets styles, scripts and fonts before the pictures that it asked for first', async (t) => {
  const { cert, key } = await (await createAuthority()).issue(['localhost']);
  const images = Array.from({ length: pictures }, (_, at) => [`site/${at}.svg`, picture()]);
  const site = await startSite(t, {
    listen: 'listen = https://127.0.0.1:0',
    ini: '[tls]\ncert = cert.pem\nkey = key.pem\n[disk.site]\nroot = site\n',
    files: {
      'cert.pem': cert,
      'key.pem': key,
      'site/index.html': page,
      'site/style.css': 'p { color: red }',
      'site/late.js': 'document.title += "!";',
      'site/font.woff2': randomBytes(20_000),
      ...(Object.fromEntries(images) as Record<string, string>),
    },
  });
  const gate = await startGate(t, Number(new URL(site.url).port));
  gate.allow(handshakeBytes + page.length);
  const { page: tab } = await openTab(t, { ignoreHTTPSErrors: true });
  const requested = new Set<string | undefined>();
  const devtools = await tab.context().newCDPSession(tab);
  await devtools.send('Network.enable');
  // Unlike `request`, this event comes when the request has left the browser.
  devtools.on('Network.requestWillBeSentExtraInfo', ({ headers }) => {
    requested.add(headers[':path']);
    if (requested.size === 1 + pictures + needed.length) gate.allow(Infinity);
  });
  await tab.goto(`https://localhost:${gate.port}/`);
  const ended = await tab.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .map((entry) => entry as PerformanceResourceTiming)
      .toSorted((one, other) => one.responseEnd - other.responseEnd)
      .map(({ name, nextHopProtocol }) => ({ name: name.split('/').at(-1), nextHopProtocol })),
  );
  assert.equal(ended.length, pictures + needed.length);
  assert.ok(ended.every(({ nextHopProtocol }) => nextHopProtocol === 'h2'));
  for (const name of needed) {
    const before = ended.findIndex((one) => one.name === name);
    assert.ok(before <= sentBeforeMax, `${before} files came before ${name}`);
  }
});
