import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startRig, type Handler } from './rig.ts';

/** A source that starts a session on each page, and says that caches may store the page. */
const sessions: Handler = (request, response, count) => {
  const isKnown = request.headers['if-none-match'] !== undefined;
  response.writeHead(isKnown ? 304 : 200, {
    'Cache-Control': 'public, max-age=60',
    ETag: '"x"',
    'Set-Cookie': [`sid=${count}`, `seen=${count}`],
  });
  response.end(isKnown || request.method === 'HEAD' ? undefined : `page ${count}`);
};

const cookiesOf = (value: string | undefined): string | undefined =>
  /^sid=\d+/.exec(value ?? '')?.[0];

suite('an answer that sets cookies', () => {
  test('is never stored: each visitor gets a session of their own', async (t) => {
    const { ask, requests } = await startRig(t, sessions);
    const one = await ask();
    assert.match(one.field('cache-status') ?? '', /; detail=cookie$/);
    const others = await Promise.all([ask(), ask(), ask()]);
    const all = [one, ...others].map((seen) => cookiesOf(seen.field('set-cookie')));
    assert.equal(new Set(all).size, 4, all.join());
    assert.equal(requests.length, 4);
  });

  test('is not stored for a POST that names its own page either', async (t) => {
    const { ask } = await startRig(
      t,
      (request, response, count) => {
        response.writeHead(200, {
          'Cache-Control': 'max-age=60',
          'Content-Location': '/shop/',
          ...(request.method === 'POST' && { 'Set-Cookie': 'sid=1' }),
        });
        response.end(`page ${count}`);
      },
      { enginedata: { methods: ['GET', 'POST'] } },
    );
    await ask({ method: 'POST' });
    assert.equal((await ask()).text, 'page 2');
  });

  test('is stored without them with cache_cookies, and one visitor gets them', async (t) => {
    const { ask, pass, requests } = await startRig(t, sessions, {
      enginedata: { cache_cookies: true },
    });
    const first = await Promise.all([ask(), ask(), ask()]);
    const cookies = first.flatMap((seen) => cookiesOf(seen.field('set-cookie')) ?? []);
    assert.deepEqual(cookies, ['sid=1']);
    const later = await ask();
    assert.deepEqual(
      [later.cache, later.text, later.field('set-cookie')],
      ['hit', 'page 1', undefined],
    );
    pass(61);
    const validated = await ask();
    assert.deepEqual(
      [validated.text, cookiesOf(validated.field('set-cookie'))],
      ['page 1', 'sid=2'],
    );
    assert.equal((await ask()).field('set-cookie'), undefined);
    assert.equal(requests.length, 2);
  });

  for (const method of ['GET', 'HEAD']) {
    test(`ends what is stored if it answers a validation by ${method}`, async (t) => {
      let isSession = false;
      const { ask, pass } = await startRig(t, (request, response, count) => {
        if (isSession) sessions(request, response, count);
        else response.writeHead(200, { 'Cache-Control': 'max-age=60', ETag: '"x"' }).end('all');
      });
      await ask();
      isSession = true;
      pass(61);
      const validated = await ask({ method });
      assert.equal(cookiesOf(validated.field('set-cookie')), 'sid=2');
      const next = await ask();
      assert.deepEqual([next.text, cookiesOf(next.field('set-cookie'))], ['page 3', 'sid=3']);
    });
  }
});
