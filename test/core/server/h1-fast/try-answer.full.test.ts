import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import { temporaryFolder, writeFiles } from '../../../folder.ts';
import { startSite, type TestSite } from '../../../harness.ts';
import { rawSource } from '../../outbound/sources.ts';
import type { RawAnswer } from '../../pipeline/answers.ts';
import {
  firstRequest,
  openUsed,
  parsedRequests,
  rawConnection,
  type RawConnection,
} from '../../pipeline/raw-connection.ts';

/** The responses of a source, by path. */
const fetched: Readonly<Record<string, string>> = {
  '/small': 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nsmall',
  '/dated': 'HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok',
  '/odd':
    'HTTP/1.1 299 Odd\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nX: \xe9\r\nContent-Length: 2\r\n\r\nok',
  '/chunks': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
  '/stream': `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n30d40\r\n${'x'.repeat(200_000)}\r\n0\r\n\r\n`,
  '/large': `HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`,
  '/empty': 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
  '/moved': 'HTTP/1.1 301 Moved\r\nLocation: /small\r\nContent-Length: 0\r\n\r\n',
  '/none': 'HTTP/1.1 204 No Content\r\n\r\n',
  '/reset': 'HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n',
  '/known': 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n',
  '/hinted':
    'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n' +
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
};

const template = { template: '{{ 1 | plus: 1 }}' };
const rules = [
  { path: '/page', content: 'page \xe9' },
  { path: '/blank', content: '' },
  { path: '/long', content: '<p>long</p>'.repeat(2_000) },
  { path: '/wordy', content: 'words '.repeat(500), contenttype: 'text/plain' },
  { path: '/tongue', lang: 'de', content: 'Seite' },
  { path: '/tongue', lang: 'en', content: 'page' },
  ...[204, 205, 304, 299, 404].map((status) => ({
    path: `/as/${status}`,
    content: 'page',
    httpresponse: status,
  })),
  { path: '/generic', kind: 'content', engine: 'template', enginedata: template },
  { path: '/crumb', kind: 'resolve', enginedata: { target: '/page' } },
  { path: '/crumb/gone', kind: 'resolve', httpresponse: 204, enginedata: { html: 'x' } },
  { path: '/crumb/reset', kind: 'resolve', httpresponse: 205, enginedata: { html: 'x' } },
  { path: '/crumb/html', kind: 'resolve', enginedata: { html: '<b>here</b>' } },
];

const files = {
  'site/index.html': '<p>home</p>',
  'site/file.txt': 'a file of words',
  'site/big.bin': Buffer.alloc(300_000, 'x'),
  'site/empty.txt': '',
  'site/dir/index.html': 'x',
  'site/list/a.txt': 'a',
};

const settingsFor = (folder: string) => `
[fetch]
allow_private = 127.0.0.0/8
cache = 0
[disk.site]
root = ${folder}/site
listing = yes
[disk.site.headers]
X-Mount = site
[log]
format = json
`;

/** Starts the sources; resolves to the rules that fetch from them. */
function startSources(t: TestContext): Promise<readonly object[]> {
  const far = Object.entries(fetched).map(async ([path, answer]) => {
    const { origin } = await rawSource(t, Buffer.from(answer, 'latin1'));
    const enginedata = { source: `${origin}${path}` };
    return { path: `/far${path}`, kind: 'content.fetch', enginedata };
  });
  return Promise.all(far);
}

/** A site with all kinds of responses. */
function startAll(
  t: TestContext,
  { folder, sources }: { readonly folder: string; readonly sources: readonly object[] },
  hasFastPath: boolean,
): Promise<TestSite> {
  const ini = settingsFor(folder);
  return startSite(t, { ini, rules: [...rules, ...sources], hasFastPath });
}

const person = 'Accept: text/html,*/*;q=0.8\r\n';
const place = (path: string) => `_v.origin=http://localhost&_v.path=${path}`;
const ops = '/svc1/userinterface';

/** A request: a path or a whole first line, and further fields. */
type Case = readonly [what: string, fields?: string];

/** Requests that the fast path answers. */
const direct: readonly Case[] = [
  ...['/page', '/blank', '/wordy', '/generic', '/crumb', '/crumb/html', '/none', '/'],
  ...['/dir', '/dir/', '/list/', '/file.txt', '/empty.txt', '/crumb/gone', '/crumb/reset'],
  ...['/as/204', '/as/205', '/as/304', '/as/299', '/as/404', '/far/small', '/far/chunks'],
  ...['/far/dated', '/far/odd', '/far/empty', '/far/moved', '/far/none', '/far/known'],
  ...['/svc1/health', '/svc1/none', '/svc1/ws', '/svc1/engines/html', '/svc1/key/list'],
  ...[`${ops}/get?${place('/page')}`, `${ops}/get_render?${place('/generic')}`],
  ...[`${ops}/get_resolve?_v.k=/crumb`, `${ops}.link.htm?k=/crumb`, `${ops}.link.htm?k=none`],
  ...[`${ops}/get_content?${place('/page')}`, `${ops}/insert`, `${ops}/list`],
].map((path): Case => [path]);

/** Requests whose response the server has prepared when they come again. */
const again: readonly Case[] = ['/page', '/blank', '/as/204', '/as/205', '/as/304', '/file.txt']
  .concat(['/empty.txt', '/dir', `${ops}/get_render?${place('/generic')}`])
  .map((path): Case => [path]);

const withFields: readonly Case[] = [
  ['/none', person],
  ['/svc1/none', person],
  [`${ops}.link.htm?k=none`, person],
  ['/crumb', 'Accept: application/json\r\n'],
  ['/tongue', 'Accept-Language: en\r\n'],
  ['/tongue', 'Accept-Language: de, fr\r\n'],
  ['/wordy', 'Accept-Encoding: gzip\r\n'],
  ['/page', 'If-None-Match: *\r\n'],
  ['/page', 'If-Match: "other"\r\n'],
  ['/page', 'Range: bytes=1-2\r\n'],
  ['/page', 'Range: bytes=99-\r\n'],
  ['/page', 'Connection: keep-alive\r\n'],
  ['/page', 'apikey: wrong\r\n'],
  ['/page', 'Origin: http://other.example\r\nCookie: a=b\r\nCookie: c=d\r\n'],
  ['/list/', 'Accept: application/json\r\n'],
  ['/file.txt', 'Range: bytes=2-5\r\n'],
  ['/file.txt', 'Range: bytes=2-3,5-6\r\n'],
  ['/far/small', 'Range: bytes=1-2\r\n'],
  [`${ops}/get_render?${place('/generic')}`, 'Origin: http://other.example\r\n'],
];

const heads: readonly Case[] = ['/page', '/none', '/file.txt', '/big.bin', '/far/small', '/crumb']
  .concat([
    '/as/204',
    '/svc1/health',
    '/far/large',
    `${ops}/get?${place('/page')}`,
    `${ops}/insert`,
  ])
  .map((path): Case => [`HEAD ${path} HTTP/1.1`]);

/** Requests that the fast path reads, but Node answers: the responses are long or invalid. */
const handedOver: readonly Case[] = [
  ...['/big.bin', '/long', '/far/stream', '/far/large', '/far/reset', '/far/hinted'].map(
    (path): Case => [path],
  ),
  ['/svc1/openapi.json'],
  ['/big.bin', 'Range: bytes=2-5\r\n'],
  ['/big.bin', 'Range: bytes=2-5,9-20000\r\n'],
  ['HEAD /far/chunks HTTP/1.1'],
  ['/%zz'],
  ['//evil'],
  ['/a%2fb'],
  ['/none', 'Host: localhost\r\n'],
  ['/%zz', 'Accept: text/plain\r\nAccept: text/html\r\n'],
];

/** Requests that Node's HTTP server reads. */
const others: readonly Case[] = [
  ['GET /page HTTP/1.0', 'Connection: keep-alive\r\n'],
  ['OPTIONS /page HTTP/1.1'],
  ['POST /page HTTP/1.1', 'Content-Length: 0\r\n'],
  ['DELETE /page HTTP/1.1'],
  ['/page', 'Connection: close\r\n'],
  ['/page', 'TE: trailers\r\nConnection: TE\r\n'],
  ['/page', 'Expect: 100-continue\r\n'],
  // With Host and X-Odd, 101 fields.
  ['/page', 'Cookie: a\r\n'.repeat(99)],
];

/** A field without effect, for which the server prepares no response. */
const odd = 'X-Odd: 1\r\n';
const closes = [...direct, ...handedOver].map(([what]): Case => [what, 'Connection: close\r\n']);
const plain = [...direct, ...withFields, ...heads, ...again, ...closes];
/** Each request, with and without the field that prevents a prepared response. */
const cases = [
  ...plain.map((what) => [what, ''] as const),
  ...[...plain, ...handedOver, ...others].map((what) => [what, odd] as const),
];
const plainRequest = 'GET /svc1/health HTTP/1.1\r\nHost: localhost\r\n\r\n';

function requestOf([what, fields = '']: Case, more = ''): string {
  const line = what.startsWith('/') ? `GET ${what} HTTP/1.1` : what;
  return `${line}\r\nHost: localhost\r\n${fields}${more}\r\n`;
}

const uuid = /[0-9a-f]{8}-[0-9a-f-]{27}/g;

/** A response without the parts that differ each time. */
function comparable({ fields, content, ...answer }: RawAnswer): RawAnswer {
  // Operations answer with ids of rules, which differ on each site.
  const hasId = fields.includes('Access-Control-Expose-Headers: ETag');
  const isNow = (line: string) => line.startsWith('Date: ') && !line.includes(' 2024 ');
  return {
    ...answer,
    fields: fields.map((line) => {
      if (isNow(line)) return 'Date: now';
      return hasId && line.startsWith('ETag: ') ? 'ETag: of an id' : line;
    }),
    content: content.replace(uuid, 'id'),
  };
}

/** Sends each request on a new connection, and then another one on the same connection. */
async function askAll(
  cases: readonly (readonly [Case, string])[],
  open: () => Promise<RawConnection>,
): Promise<readonly RawAnswer[]> {
  const answers: RawAnswer[] = [];
  for (const [what, more] of cases) {
    const connection = await open();
    const answer = comparable(await connection.ask(requestOf(what, more)));
    answers.push(answer);
    if (answer.fields.includes('Connection: close')) {
      assert.equal(await connection.answers.rest(), '', what[0]);
    } else {
      const next = await connection.ask(firstRequest);
      assert.deepEqual([next.content, next.ahead], ['{"status":"ok"}', []], what[0]);
    }
    connection.socket.destroy();
  }
  return answers;
}

/**
 * The access log without the parts that differ each time, and without the requests that the test
 * adds. The order of its lines can differ: the server logs a response when the client has read it.
 */
function accessed(site: TestSite): readonly string[] {
  const lines = site.logged().split('\n');
  const entries = lines.filter((line) => /"target":(?!"\/svc1\/(?:health|metrics)")/.test(line));
  return entries.map((line) => {
    const { time: _time, ms: _ms, id: _id, ...entry } = JSON.parse(line) as Record<string, unknown>;
    // The ids of rules differ on each site.
    return JSON.stringify(entry).replace(uuid, 'id');
  });
}

/** The requests in the metrics, by class and source. */
async function counted({ url }: TestSite): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`${url}/svc1/metrics`)).text();
  const lines = text.matchAll(/^waymark_requests_total\{(.*)\} (\d+)$/gm);
  return new Map(Array.from(lines, ([, name = '', count]) => [name, Number(count)]));
}

/** The differences of counts. */
function added(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): object {
  return Object.fromEntries([...after].map(([name, n]) => [name, n - (before.get(name) ?? 0)]));
}

/** Waits until the background compression of a page has ended. */
async function untilCoded({ url }: TestSite): Promise<void> {
  const headers = { 'Accept-Encoding': 'gzip' };
  for (let coding: string | null = null; coding !== 'gzip';) {
    coding = (await fetch(`${url}/wordy`, { headers })).headers.get('content-encoding');
  }
}

suite('with the fast path or without it', () => {
  test('a request has the same response, log line and metrics', async (t) => {
    const shared = { folder: await temporaryFolder(t), sources: await startSources(t) };
    await writeFiles(shared.folder, files);
    const run = async (hasFastPath: boolean) => {
      const site = await startAll(t, shared, hasFastPath);
      await untilCoded(site);
      const [lines, counts] = [accessed(site).length, await counted(site)];
      const where = { port: site.port, host: '127.0.0.1' };
      const opens = {
        first: () => Promise.resolve(rawConnection(t, connect(where))),
        behind: () => openUsed(t, where),
        behindPlain: () => openUsed(t, where, plainRequest),
      };
      const answers: Record<string, readonly RawAnswer[]> = {};
      for (const [name, open] of Object.entries(opens)) answers[name] = await askAll(cases, open);
      const after = await counted(site);
      return {
        answers,
        counts: added(counts, after),
        lines: accessed(site).slice(lines).sort(),
      };
    };
    const { targets } = parsedRequests(t);
    const fast = await run(true);
    const parsed = targets.length;
    const slow = await run(false);
    for (const [name, answers] of Object.entries(slow.answers)) {
      for (const [at, [what, more]] of cases.entries()) {
        assert.deepEqual(
          fast.answers[name]?.[at],
          answers[at],
          `${name}: ${requestOf(what, more)}`,
        );
      }
    }
    const differing = fast.lines.filter((line, at) => line !== slow.lines[at]);
    assert.deepEqual([differing.slice(0, 3), fast.lines.length], [[], slow.lines.length]);
    assert.deepEqual(fast.counts, slow.counts);
    // If the fast path answered nothing, the test would compare equal runs.
    assert.ok(targets.length - parsed > parsed + cases.length);
  });
});
