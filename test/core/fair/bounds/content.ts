import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { readdir, stat } from 'node:fs/promises';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { outboundConnectionsMax } from '../../../../src/core/outbound/h1/http1-client.ts';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';
import {
  addressA,
  addressB,
  addressC,
  behindProxy,
  floodWith,
  newKey,
  pageOf,
  type Row,
} from './row.ts';

/** The size of an upload that is interrupted. */
const total = 200_000;

const sharp = await import('sharp').catch(() => undefined);

/** A server that never answers requests of A, and those of others at once. */
async function startHanging(t: TestContext, isOfA: (request: IncomingMessage) => boolean) {
  const held: ServerResponse[] = [];
  const server = createServer((request, response) => {
    if (isOfA(request)) held.push(response);
    else response.end('ok');
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { held, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Sends requests of an address that nobody waits for; resolves when the server holds enough. */
async function holdAll(
  t: TestContext,
  site: TestSite,
  {
    from,
    count,
    held,
    until,
  }: {
    readonly from: string;
    readonly count: number;
    readonly held: { readonly length: number };
    readonly until: number;
  },
): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    const socket = connect(site.port, '127.0.0.1').on('error', () => undefined);
    t.after(() => socket.destroy());
    socket.write(`GET /a HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${from}\r\n\r\n`);
  }
  while (held.length < until) await delay(10);
}

/** Opens a preview of a new draft of a key; returns its cookie. */
async function previewOf(site: TestSite, name: string, apikey: string): Promise<string> {
  await site.call('svc1.draft.insert', { name }, { apikey });
  const { data } = await site.call('svc1.draft.preview', { draft: name }, { apikey });
  const { headers } = await fetch((data as { readonly url: string }).url, { redirect: 'manual' });
  return headers.getSetCookie()[0]?.split(';')[0] ?? '';
}

/** Bounds of pages and files. */
export const contentRows: readonly Row[] = [
  {
    bound: 'pages that threads render',
    of: ['modules/rendering/template-threads.ts'],
    limits: ['renderings'],
    async start(t) {
      const loop =
        '{% for i in (1..20) %}{% for j in (1..100) %}<p>{{ i }}</p>{% endfor %}{% endfor %}';
      const enginedata = { render: 'server', template: `<h1>{{ query.q }}</h1>${loop}` };
      const rule = { path: '/find', kind: 'content', engine: 'template', enginedata };
      const site = await startSite(t, { ...behindProxy, rules: [rule] });
      return {
        ask: (at) => pageOf(site, `/find?q=b${at}`, addressB),
        attack: () => floodWith(t, 64, (at) => pageOf(site, `/find?q=a${at}`, addressA)),
      };
    },
  },
  {
    bound: 'smaller pictures',
    of: ['modules/assets/variants.ts'],
    async start(t) {
      const rules = Array.from({ length: 30 }, (_, at) => ({
        ...{ path: `/p${at}`, asset: `p${at}.png` },
      }));
      const site = await startSite(t, { ...behindProxy, rules });
      if (sharp === undefined) throw new Error('sharp is not installed');
      const data = Buffer.alloc(1_600 * 900 * 3);
      for (const { asset } of rules) {
        for (let at = 0; at < data.length; at += 1) data[at] = (at * 31 + asset.length) % 251;
        data.write(asset, 0, 'latin1');
        const raw = { width: 1_600, height: 900, channels: 3 } as const;
        const body = new Uint8Array(await sharp.default(data, { raw }).png().toBuffer());
        const headers = { apikey: site.adminKey };
        await fetch(`${site.url}/svc1/asset/${asset}`, { method: 'PUT', body, headers });
      }
      const widths = [160, 320, 640, 960, 1_280];
      const path = (at: number, of: number): string =>
        `/p${of + (at % 15)}?width=${widths[Math.floor(at / 15) % widths.length] ?? 0}`;
      const accept = { accept: 'image/webp,*/*' };
      return {
        ask: (at) => pageOf(site, path(at, 15), addressB, accept),
        attack: () => floodWith(t, 20, (at) => pageOf(site, path(at, 0), addressA, accept)),
      };
    },
  },
  {
    bound: 'interrupted uploads',
    of: ['core/fair/shared-cache.ts', 'modules/assets/asset-files.ts'],
    async start(t) {
      const site = await startSite(t);
      const apikey = await newKey(site, 'design');
      const folder = join(site.folder, 'data/assets/.incoming');
      let sent = 100_000;
      const interrupt = async (name: string, key: string): Promise<void> => {
        // Each has its own size, by which the file of its beginning is found.
        sent += 1;
        const size = sent;
        const socket = connect(site.port, '127.0.0.1').on('error', () => undefined);
        socket.write(
          `PUT /svc1/asset/${name} HTTP/1.1\r\nHost: a\r\napikey: ${key}\r\n` +
            `Content-Length: ${total}\r\n\r\n${'x'.repeat(size)}`,
        );
        const sizes = async (): Promise<readonly number[]> => {
          const names = await readdir(folder).catch(() => []);
          const sizeOf = (one: string) =>
            stat(join(folder, one)).then(
              (found) => found.size,
              () => 0,
            );
          return Promise.all(names.map(sizeOf));
        };
        while (!(await sizes()).includes(size)) await delay(1);
        socket.destroy();
      };
      const receivedOf = async (name: string): Promise<number> => {
        const headers = { apikey: site.adminKey, 'content-range': `bytes */${total}` };
        const kept = await fetch(`${site.url}/svc1/asset/${name}`, { method: 'PUT', headers });
        return ((await kept.json()) as Answer).data.received as number;
      };
      return {
        async ask(at) {
          if (at === 0) await interrupt('b.bin', site.adminKey);
          while (at === 0 && (await receivedOf('b.bin')) === 0) await delay(1);
          assert.equal(await receivedOf('b.bin'), 100_001);
        },
        async attack() {
          for (let at = 0; at < 80; at += 1) await interrupt(`a${at}.bin`, apikey);
        },
      };
    },
  },
  {
    bound: 'drafts in memory, for previews',
    of: ['cli/serve/assembly/drafts.ts'],
    async start(t) {
      const site = await startSite(t, { rules: [{ path: '/', content: 'x' }] });
      const apikey = await newKey(site, 'draft', 'read');
      const own = await previewOf(site, 'b', site.adminKey);
      const see = async (cookie: string): Promise<void> => {
        const { status } = await fetch(`${site.url}/`, { headers: { cookie } });
        assert.equal(status, 200);
      };
      return {
        ask: () => see(own),
        async attack() {
          const cookies: string[] = [];
          for (let at = 0; at < 8; at += 1) cookies.push(await previewOf(site, `a${at}`, apikey));
          return floodWith(t, 4, (at) => see(cookies[at % cookies.length] ?? ''));
        },
      };
    },
  },
  {
    bound: 'connections to one source',
    of: ['core/outbound/server-places.ts', 'core/outbound/h1/http1-client.ts'],
    limits: ['fetches'],
    async start(t) {
      const { held, url } = await startHanging(t, (request) => request.url === '/a');
      const ini = `[proxy.app]\npath = /\nsource = ${url}\n`;
      const site = await startSite(t, { ...behindProxy, ini });
      const count = outboundConnectionsMax / 2 + 50;
      return {
        ask: (at) => pageOf(site, `/b${at}`, addressB),
        async attack() {
          const half = outboundConnectionsMax / 2;
          await holdAll(t, site, { from: addressA, count, held, until: half });
          await holdAll(t, site, { from: addressC, count, held, until: half + half / 2 });
        },
      };
    },
  },
  {
    bound: 'questions to the server of forward',
    of: ['modules/access/forward.ts'],
    async start(t) {
      const isOfA = ({ headers }: IncomingMessage): boolean =>
        headers['x-forwarded-for'] === addressA;
      const { held, url } = await startHanging(t, isOfA);
      const ini = `[access.all]\nforward = ${url}/\n[disk.site]\nroot = site\n`;
      const site = await startSite(t, { ...behindProxy, ini, files: { 'site/b.txt': 'b' } });
      const until = outboundConnectionsMax / 2;
      return {
        ask: () => pageOf(site, '/b.txt', addressB),
        attack: () => holdAll(t, site, { from: addressA, count: until + 200, held, until }),
      };
    },
  },
  {
    bound: 'pieces of files, beside readers that take a few bytes a second',
    of: ['core/server/copy-file.ts', 'core/server/h1/file-buffers.ts'],
    limits: ['unread_answer', 'slow_answer'],
    async start(t) {
      const files = { 'site/large.bin': Buffer.alloc(20_000_000, 'x') };
      const site = await startSite(t, { ...behindProxy, ini: '[disk.site]\nroot = site\n', files });
      return {
        ask: async () => {
          const headers = { 'x-forwarded-for': addressB, range: 'bytes=0-999999' };
          const answer = await fetch(`${site.url}/large.bin`, { headers });
          assert.equal((await answer.arrayBuffer()).byteLength, 1_000_000);
        },
        async attack() {
          for (let at = 0; at < 300; at += 1) {
            const socket = connect(site.port, '127.0.0.1')
              .on('error', () => undefined)
              .pause();
            t.after(() => socket.destroy());
            socket.write(
              `GET /large.bin HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${addressA}\r\n\r\n`,
            );
          }
          await delay(50);
        },
      };
    },
  },
  {
    bound: 'readers of the live access log',
    of: ['modules/status/live-access.ts'],
    limits: ['live_access'],
    async start(t) {
      const site = await startSite(t);
      const apikey = await newKey(site, 'admin');
      const read = async (key: string): Promise<void> => {
        const socket = await site.socket(key);
        t.after(() => {
          socket.websocket.terminate();
        });
        const { error } = await socket.call('svc1.log.access', {});
        assert.equal(error?.message, undefined);
        if (key === site.adminKey) socket.websocket.terminate();
      };
      return {
        ask: () => read(site.adminKey),
        attack: () => Promise.allSettled(Array.from({ length: 50 }, () => read(apikey))),
      };
    },
  },
  {
    bound: 'large writes in a thread',
    of: ['cli/serve/write-thread.ts'],
    async start(t) {
      const site = await startSite(t);
      const apikey = await newKey(site, 'design');
      const write = async (name: string, key: string): Promise<void> => {
        const lines = Array.from({ length: 300 }, (_, at) =>
          JSON.stringify({ path: `/${name}/${at}`, content: 'x'.repeat(100) }),
        );
        const answer = await fetch(`${site.url}/svc1/userinterface/import`, {
          ...{ method: 'POST', body: lines.join('\n') },
          headers: { apikey: key, 'content-type': 'application/x-ndjson' },
        });
        assert.equal(answer.status, 200, await answer.text());
      };
      return {
        ask: (at) => write(`b${at}`, site.adminKey),
        // One that runs, and the four that may wait.
        attack: () => floodWith(t, 5, (at) => write(`a${at}`, apikey)),
      };
    },
  },
  {
    bound: 'lists that count, on the event loop',
    of: ['core/fair/turns.ts'],
    async start(t) {
      const site = await startSite(t);
      const schema = { type: 'object', properties: { text: { type: 'string' } } };
      await site.call('svc1.table.insert', { name: 'letters', schema });
      const write = (at: number): Promise<unknown> =>
        site.call('svc1.record.insert', { table: 'letters', record: { text: `${at}` } });
      for (let at = 0; at < 2_000; at += 100) {
        await Promise.all(Array.from({ length: 100 }, (_, one) => write(at + one)));
      }
      const apikey = await newKey(site, 'read');
      const list = async (key: string): Promise<void> => {
        const given = { table: 'letters', count: true };
        const { error } = await site.call('svc1.record.list', given, { apikey: key });
        assert.equal(error?.message, undefined);
      };
      return {
        ask: () => list(site.adminKey),
        attack: () => floodWith(t, 8, () => list(apikey)),
      };
    },
  },
];
