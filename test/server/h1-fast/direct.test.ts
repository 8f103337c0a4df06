import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';
import { rawSource } from '../../outbound/sources.ts';
import type { RawAnswer } from '../answers.ts';
import { asked, firstRequest, openUsed, parsedRequests, type AskedConnection } from '../ways.ts';

/** What a source answers to a path. */
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

const settings = `
[fetch]
allow_private = 127.0.0.0/8
cache = 0
[disk.site]
root = site
listing = yes
[disk.site.headers]
X-Mount = site
[log]
format = json
`;

/** A site with everything that is answered in a way of its own. */
async function startAll(t: TestContext): Promise<TestSite> {
  const far = Object.entries(fetched).map(async ([path, answer]) => {
    const { origin } = await rawSource(t, Buffer.from(answer, 'latin1'));
    const enginedata = { source: `${origin}${path}` };
    return { path: `/far${path}`, kind: 'content.fetch', enginedata };
  });
  return startSite(t, { ini: settings, files, rules: [...rules, ...(await Promise.all(far))] });
}

const person = 'Accept: text/html,*/*;q=0.8\r\n';
const place = (path: string) => `_v.origin=http://localhost&_v.path=${path}`;
const ops = '/svc1/userinterface';

/** What is asked for, by path or as a whole first line, with further fields. */
type Case = readonly [what: string, fields?: string];

/** Requests that are answered without Node on a connection that was used before. */
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

/** Those that are prepared by the second time. */
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

/** Requests that Node answers after all: their answers are long, or end the connection. */
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

/** Requests that are Node's from the first byte. */
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

const ways = { direct: [...direct, ...withFields, ...heads], handedOver, others };
/** A field that no answer is prepared for, and that changes nothing. */
const odd = 'X-Odd: 1\r\n';

function requestOf([what, fields = '']: Case, more = ''): string {
  const line = what.startsWith('/') ? `GET ${what} HTTP/1.1` : what;
  return `${line}\r\nHost: localhost\r\n${fields}${more}\r\n`;
}

/** An answer without what is another each time. */
function comparable({ fields, content, ...answer }: RawAnswer): RawAnswer {
  const uuid = /[0-9a-f]{8}-[0-9a-f-]{27}/g;
  const isNow = (line: string) => line.startsWith('Date: ') && !line.includes(' 2024 ');
  return {
    ...answer,
    fields: fields.map((line) => (isNow(line) ? 'Date: now' : line)),
    content: content.replace(uuid, 'id'),
  };
}

/** What a request came to, and whether Node's HTTP server had a part in it. */
interface Told {
  readonly answer: RawAnswer;
  readonly isParsed: boolean;
}

/** Asks each on a connection of its own, and then for something else on the same. */
async function askAll(
  cases: readonly (readonly [Case, string])[],
  open: () => Promise<AskedConnection>,
  parsed: readonly string[],
): Promise<readonly Told[]> {
  const told: Told[] = [];
  for (const [what, more] of cases) {
    const connection = await open();
    const before = parsed.length;
    const answer = comparable(await connection.ask(requestOf(what, more)));
    told.push({ answer, isParsed: parsed.length > before });
    if (answer.fields.includes('Connection: close')) {
      assert.equal(await connection.answers.rest(), '', what[0]);
    } else {
      const behind = await connection.ask(firstRequest);
      assert.deepEqual([behind.content, behind.ahead], ['{"status":"ok"}', []], what[0]);
    }
    connection.socket.destroy();
  }
  return told;
}

/**
 * The access log without what is another each time, and without the requests around others. An
 * answer that waits for its client is told of behind others.
 */
function accessed(site: TestSite): readonly string[] {
  const lines = site.logged().split('\n');
  const entries = lines.filter((line) => /"target":(?!"\/svc1\/(?:health|metrics)")/.test(line));
  return entries.map((line) => {
    const { time: _time, ms: _ms, id: _id, ...entry } = JSON.parse(line) as Record<string, unknown>;
    return JSON.stringify(entry);
  });
}

/** How many requests the metrics count, by class and source, other than those for themselves. */
async function counted({ url }: TestSite): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`${url}/svc1/metrics`)).text();
  const lines = text.matchAll(/^waymark_requests_total\{(.*)\} (\d+)$/gm);
  return new Map(Array.from(lines, ([, name = '', count]) => [name, Number(count)]));
}

/** What has come to a count between two moments. */
function added(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): object {
  return Object.fromEntries([...after].map(([name, n]) => [name, n - (before.get(name) ?? 0)]));
}

/** Waits for what is made in the background of a page, so that it is there for all. */
async function untilCoded({ url }: TestSite): Promise<void> {
  const headers = { 'Accept-Encoding': 'gzip' };
  for (let coding: string | null = null; coding !== 'gzip';) {
    coding = (await fetch(`${url}/wordy`, { headers })).headers.get('content-encoding');
  }
}

suite('a request behind another', () => {
  test('has the answer, and leaves the traces, of the first of a connection', async (t) => {
    const site = await startAll(t);
    await untilCoded(site);
    const { targets } = parsedRequests(t);
    const plain = [...ways.direct, ...again].map((what) => [what, ''] as const);
    const others = [...ways.direct, ...ways.handedOver, ...ways.others];
    const cases = [...plain, ...others.map((what) => [what, odd] as const)];
    const withoutNode = new Set([...ways.direct, ...again]);
    const where = { port: site.port, host: '127.0.0.1' };
    const used = () => openUsed(t, where);
    const unused = async () => {
      (await used()).socket.destroy();
      return asked(t, connect(where));
    };
    const run = async (open: () => Promise<AskedConnection>) => {
      const [lines, counts] = [accessed(site).length, await counted(site)];
      const told = await askAll(cases, open, targets);
      const after = await counted(site);
      return { told, counts: added(counts, after), lines: accessed(site).slice(lines).sort() };
    };
    const [behind, first] = [await run(used), await run(unused)];
    for (const [at, [what, more]] of cases.entries()) {
      const [one, other] = [behind.told[at], first.told[at]];
      const name = requestOf(what, more);
      assert.deepEqual(one?.answer, other?.answer, name);
      assert.ok(other?.isParsed, name);
      assert.equal(one?.isParsed, !withoutNode.has(what), name);
    }
    assert.ok(first.lines.length > others.length && Object.keys(first.counts).length > 5);
    assert.deepEqual(behind.lines, first.lines);
    assert.deepEqual(behind.counts, first.counts);
  });
});
