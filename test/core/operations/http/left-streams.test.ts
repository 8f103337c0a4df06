import assert from 'node:assert/strict';
import { on, once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import { suite, test } from 'node:test';
import { httpSource } from '../../outbound/sources.ts';
import { startSite, type TestSite } from '../../../harness.ts';

/** A request whose answer has begun, and has no end; it returns how its client leaves. */
type Begin = (
  site: TestSite,
  path: string,
) => Promise<{
  readonly endSide: () => void;
  readonly reset: () => void;
}>;

const inputs: Readonly<Record<string, object>> = {
  '/svc1/server/subscribe': { topics: ['keys'] },
};

function bodyFor(path: string): string {
  return JSON.stringify({ v: inputs[path] ?? {} });
}

function headersOf({ adminKey }: TestSite): Record<string, string> {
  return { apikey: adminKey, 'content-type': 'application/json' };
}

const overHttp1: Begin = async (site, path) => {
  const headers = headersOf(site);
  const request = http.request(site.url + path, { method: 'POST', agent: false, headers });
  request.end(bodyFor(path));
  const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
  answer.on('error', () => undefined);
  assert.equal(answer.statusCode, 200);
  const { socket } = answer;
  return { endSide: () => socket.end(), reset: () => void socket.resetAndDestroy() };
};

const overHttp2: Begin = async (site, path) => {
  const session = http2.connect(site.url).on('error', () => undefined);
  const stream = session.request({ ...headersOf(site), ':method': 'POST', ':path': path });
  stream.on('error', () => undefined).end(bodyFor(path));
  const [head] = (await once(stream, 'response')) as [{ readonly ':status'?: number }];
  assert.equal(head[':status'], 200);
  const cancel = (): void => {
    stream.close(http2.constants.NGHTTP2_CANCEL, () => {
      session.close();
    });
  };
  const endSide = (): void => {
    session.destroy();
  };
  return { endSide, reset: cancel };
};

suite('an answer without an end, while nothing happens', () => {
  for (const [transport, begin] of Object.entries({ 'HTTP/1.1': overHttp1, 'HTTP/2': overHttp2 })) {
    for (const path of ['/svc1/server/subscribe', '/svc1/log/access', '/app/events']) {
      for (const way of ['endSide', 'reset'] as const) {
        test(`ends when its client leaves: ${path} over ${transport}, ${way}`, async (t) => {
          const app = await httpSource(t, (_, response) => {
            response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n');
          });
          const site = await startSite(t, {
            ini: `[proxy.app]\npath = /app/\nsource = ${app.origin}`,
          });
          const watcher = await site.socket(site.adminKey);
          const messages = on(watcher.websocket, 'message');
          await watcher.call('svc1.log.access', { path });
          const client = await begin(site, path);
          client[way]();
          // The access log has an answer once it has ended.
          for await (const [bytes] of messages) {
            const { r, data } = JSON.parse(String(bytes)) as {
              readonly r: string;
              readonly data: { readonly rows: readonly { readonly cut?: true }[] };
            };
            if (r !== 'svc1.log.accessed') continue;
            assert.deepEqual(
              data.rows.map(({ cut }) => cut),
              [true],
            );
            break;
          }
        });
      }
    }
  }
});
