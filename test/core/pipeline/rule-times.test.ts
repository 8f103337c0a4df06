import assert from 'node:assert/strict';
import { connect } from 'node:http2';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type TestSite } from '../../harness.ts';
import { startFollower, untilEqual } from '../../modules/nodes/rig.ts';
import { readReply, type StreamReply } from '../server/h2/client.ts';

/** What a visitor, or somebody who previews a draft, sees at a path. */
type Ask = (path: string) => Promise<string>;

/** A moment of the tests, so many seconds after their beginning. */
const at = (startMs: number, seconds: number): string =>
  new Date(startMs + seconds * 1_000).toISOString();

/** The pages: one changes after 60 s and ends after 120 s, and one is a shell with two templates. */
function rulesOf(startMs: number): readonly object[] {
  const [change, end] = [at(startMs, 60), at(startMs, 120)];
  const shell = { kind: 'content', engine: 'html', enginedata: { page: '/shell' } };
  const headers = { 'Cache-Control': 'max-age=3600' };
  return [
    { path: '/*', content: 'else', headers },
    { path: '/a', content: 'old', until: change, headers },
    { path: '/a', content: 'new', from: change, until: end, headers },
    { path: '/shell', content: 'old', until: change },
    { path: '/shell', content: 'new', from: change, until: end },
    { path: '/shell*', rve: -1, content: 'else' },
    { path: '/app', ...shell },
    { path: '/go', kind: 'resolve', enginedata: { target: '/old' }, until: change },
    { path: '/go', kind: 'resolve', rve: -1, enginedata: { target: '/else' } },
  ];
}

const get = async (url: string, headers = {}): Promise<string> => {
  const answer = await fetch(url, { headers, redirect: 'manual' });
  const text = await answer.text();
  return answer.headers.get('location') ?? text;
};

/** The preview of a draft that shows `/a` otherwise from 60 s on, as a browser sees it. */
async function previewOf(site: TestSite, startMs: number): Promise<Ask> {
  await site.call('svc1.draft.insert', { name: 'sale' });
  const v = { path: '/a', rve: 1, content: 'drafted', from: at(startMs, 60) };
  const { error } = await site.call('svc1.userinterface.insert', v, { draft: 'sale' });
  assert.equal(error, undefined);
  const { data } = await site.call('svc1.draft.preview', { draft: 'sale' });
  const opened = await fetch(data.url as string, { redirect: 'manual' });
  const [cookie = ''] = (opened.headers.get('set-cookie') ?? '').split(';');
  return async (path) => (await get(site.url + path, { cookie })).replace(/<aside.*/s, '');
}

/** Asks a site over one connection of HTTP/2. */
function overHttp2(t: TestContext, { url }: TestSite): (path: string) => Promise<StreamReply> {
  const session = connect(url);
  t.after(() => {
    session.destroy();
  });
  return (path) => readReply(session.request({ ':path': path }));
}

/** The ways by which pages are seen. */
async function waysTo(t: TestContext, site: TestSite, startMs: number) {
  const ask = overHttp2(t, site);
  const preview = await previewOf(site, startMs);
  const replica = await startFollower(t, site, { name: 'copy' });
  await untilEqual(site, replica);
  const live: Readonly<Record<string, Ask>> = {
    'HTTP/1.1': (path) => get(site.url + path),
    'HTTP/2': async (path) => {
      const { headers, body } = await ask(path);
      return headers.location ?? body.toString();
    },
    'a replica': (path) => get(replica.url + path),
  };
  return { live, preview };
}

suite('page rules with from and until', () => {
  test('begin and end at the same millisecond, whichever way a page is seen', async (t) => {
    const startMs = Math.ceil(Date.now() / 1_000) * 1_000;
    const site = await startSite(t, { rules: rulesOf(startMs) });
    const { live, preview } = await waysTo(t, site, startMs);
    t.mock.timers.enable({ apis: ['Date'], now: startMs });
    for (const [ms, shown, drafted, target] of [
      [0, 'old', 'old', '/old'],
      [59_000, 'old', 'old', '/old'],
      [59_999, 'old', 'old', '/old'],
      [60_000, 'new', 'drafted', '/else'],
      [119_999, 'new', 'drafted', '/else'],
      [120_000, 'else', 'drafted', '/else'],
      // A clock that is set back.
      [30_000, 'old', 'old', '/old'],
    ] as const) {
      t.mock.timers.setTime(startMs + ms);
      // The second answer is one that the server has prepared.
      for (const time of ['first', 'again']) {
        for (const [way, ask] of Object.entries(live)) {
          assert.equal(await ask('/a'), shown, `/a by ${way} after ${ms} ms, ${time}`);
          assert.equal(await ask('/shell'), shown, `/shell by ${way} after ${ms} ms, ${time}`);
          assert.ok(
            (await ask('/app')).startsWith(shown),
            `/app by ${way} after ${ms} ms, ${time}`,
          );
          assert.equal(await ask('/go'), target, `/go by ${way} after ${ms} ms, ${time}`);
        }
        assert.equal(await preview('/a'), drafted, `the preview after ${ms} ms, ${time}`);
        assert.equal(await preview('/go'), target);
      }
    }
  });

  test('limit how long caches have the page in a page, by HTTP and in operations', async (t) => {
    const startMs = Math.ceil(Date.now() / 1_000) * 1_000;
    const headers = { 'Cache-Control': 'max-age=3600' };
    const template = { kind: 'content', engine: 'template', enginedata: { html: 'x' } };
    const site = await startSite(t, {
      rules: [
        { path: '/shell', content: '<main>', headers, until: at(startMs, 60) },
        { path: '/shell', rve: -1, content: '<p>', headers },
        { path: '/app', kind: 'content', engine: 'html', enginedata: { page: '/shell' } },
        { path: '/render', ...template, until: at(startMs, 60) },
      ],
    });
    const ask = overHttp2(t, site);
    t.mock.timers.enable({ apis: ['Date'], now: startMs });
    const content = `/svc1/userinterface/get_content?_v.origin=${site.url}&_v.path=`;
    for (const [ms, seconds] of [
      [0, 59],
      [30_000, 29],
      [59_999, 0],
      [60_000, 3_600],
    ] as const) {
      t.mock.timers.setTime(startMs + ms);
      for (const path of ['/shell', '/app', `${content}/shell`, `${content}/app`]) {
        for (const by of [await fetch(site.url + path), await ask(path)]) {
          const caching =
            by.headers instanceof Headers
              ? by.headers.get('cache-control')
              : by.headers['cache-control'];
          assert.equal(/max-age=(\d+)/.exec(caching ?? '')?.[1], String(seconds), `${path} ${ms}`);
        }
      }
    }
    // The data of a page that a browser renders is asked for again each time.
    const v = `_v.origin=${encodeURIComponent(site.url)}&_v.path=/render`;
    const url = `${site.url}/svc1/userinterface/get_render?${v}`;
    t.mock.timers.setTime(startMs + 59_999);
    const data = await fetch(url);
    assert.deepEqual([data.status, data.headers.get('cache-control')], [200, 'private, no-cache']);
    t.mock.timers.setTime(startMs + 60_000);
    const etag = { 'if-none-match': data.headers.get('etag') ?? '' };
    assert.equal((await fetch(url, { headers: etag })).status, 404);
  });
});
