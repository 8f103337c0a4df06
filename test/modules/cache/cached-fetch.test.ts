import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { fetchRule } from '../proxy/fetch-rig.ts';
import { counting, startRig, type Handler } from './rig.ts';

const anHour = { 'Cache-Control': 'max-age=3600' };

/** Responds with 304 to a request with the entity tag. */
function tagged(tag: string, fields: Readonly<Record<string, string>>): Handler {
  return (request, response, count) => {
    const isKnown = request.headers['if-none-match']?.includes(tag) === true;
    response.writeHead(isKnown ? 304 : 200, { ETag: tag, ...fields });
    response.end(isKnown ? undefined : `answer ${count}`);
  };
}

suite('a stored response', () => {
  test('is sent without a request to the source, with its Age', async (t) => {
    const { ask, requests, pass, date } = await startRig(t, counting(anHour));
    const first = await ask();
    assert.deepEqual(
      [first.text, first.cache, first.field('age')],
      ['answer 1', 'uri-miss', undefined],
    );
    const arrived = date();
    pass(10);
    const second = await ask();
    assert.deepEqual([second.text, second.cache, second.status], ['answer 1', 'hit', 200]);
    assert.equal(second.field('age'), '10');
    assert.equal(second.field('date'), arrived);
    assert.equal(second.field('cache-status'), 'waymark; hit; ttl=3590');
    assert.equal(requests.length, 1);
  });

  test('is sent until its lifetime ends, and not a millisecond longer', async (t) => {
    const { ask, pass } = await startRig(t, counting({ 'Cache-Control': 'max-age=10' }));
    await ask();
    pass(9.999);
    assert.equal((await ask()).text, 'answer 1');
    pass(0.001);
    assert.deepEqual((await ask()).text, 'answer 2');
  });

  test('may be reused within a second, while it is fresh and the only variant', async (t) => {
    const rig = await startRig(t, (request, response, count) => {
      const { 'accept-language': language } = request.headers;
      const vary = language === undefined ? {} : { Vary: 'Accept-Language' };
      response.writeHead(200, { 'Cache-Control': 'max-age=2', ...vary }).end(`answer ${count}`);
    });
    assert.equal((await rig.reply()).isReusable, undefined);
    const nowMs = Date.parse(rig.date());
    const { isReusable, isCurrent } = await rig.reply();
    assert.equal(isReusable, true);
    assert.deepEqual(
      [0, 999, 1_000].map((laterMs) => isCurrent?.(nowMs + laterMs)),
      [true, true, false],
    );
    await rig.ask({ fields: { 'accept-language': 'de', 'cache-control': 'no-cache' } });
    assert.equal(isCurrent?.(nowMs), false);
  });

  test('belongs to one URL, including the origin and the query', async (t) => {
    const { ask } = await startRig(t, counting(anHour));
    const texts = [];
    for (const [path, query] of [
      ['/shop/a', ''],
      ['/shop/a', 'b'],
      ['/shop/a?b', ''],
      ['/shop/A', ''],
    ]) {
      texts.push((await ask({ path: path ?? '', query: query ?? '' })).text);
    }
    assert.deepEqual(texts, ['answer 1', 'answer 2', 'answer 3', 'answer 4']);
  });

  test('answers a HEAD', async (t) => {
    const { ask, requests } = await startRig(t, counting(anHour));
    await ask();
    const head = await ask({ method: 'HEAD' });
    assert.deepEqual([head.text, head.cache, head.field('content-length')], ['', 'hit', '8']);
    assert.equal(requests.length, 1);
  });

  test('answers range requests', async (t) => {
    const { ask, requests } = await startRig(t, counting(anHour));
    await ask();
    const part = await ask({ fields: { range: 'bytes=-1' } });
    assert.deepEqual([part.status, part.text, part.cache], [206, '1', 'hit']);
    assert.equal(part.field('content-range'), 'bytes 7-7/8');
    const none = await ask({ fields: { range: 'bytes=8-' } });
    assert.deepEqual([none.status, none.field('content-range')], [416, 'bytes */8']);
    assert.equal(requests.length, 1);
  });

  const conditions: readonly (readonly [Readonly<Record<string, string>>, number])[] = [
    [{ 'if-none-match': '"x"' }, 304],
    [{ 'if-none-match': 'W/"x", "y"' }, 304],
    [{ 'if-none-match': '"y"' }, 200],
    [{ 'if-modified-since': 'Fri, 02 Jan 2026 12:00:00 GMT' }, 304],
    [{ 'if-modified-since': 'Fri, 02 Jan 2026 11:59:59 GMT' }, 200],
    [{ 'if-none-match': '"y"', 'if-modified-since': 'Fri, 02 Jan 2026 12:00:00 GMT' }, 200],
    [{ range: 'bytes=0-0', 'if-range': '"x"' }, 206],
    [{ range: 'bytes=0-0', 'if-range': '"y"' }, 200],
  ];
  for (const [fields, status] of conditions) {
    test(`answers ${JSON.stringify(fields)} with ${status}`, async (t) => {
      const modified = 'Fri, 02 Jan 2026 12:00:00 GMT';
      const { ask, requests } = await startRig(
        t,
        counting({ ...anHour, ETag: '"x"', 'Last-Modified': modified, Expires: '0' }),
      );
      await ask();
      const answer = await ask({ fields });
      assert.deepEqual([answer.status, answer.cache], [status, 'hit']);
      assert.equal(answer.field('etag'), '"x"');
      assert.equal(answer.field('cache-control'), 'max-age=3600');
      if (status === 304) assert.equal(answer.field('content-type'), undefined);
      assert.equal(requests.length, 1);
    });
  }

  test('has the status of the rule', async (t) => {
    const { ask, rule } = await startRig(t, counting({ ...anHour, ETag: '"x"' }));
    const gone = { ...rule, httpresponse: 410 };
    assert.deepEqual((await ask({ rule: gone })).status, 410);
    const kept = await ask({ rule: gone, fields: { 'if-none-match': '"x"' } });
    assert.deepEqual([kept.status, kept.text, kept.cache], [410, 'answer 1', 'hit']);
  });
});

suite('a change of the clock', () => {
  const anHour = { 'Cache-Control': 'max-age=3600', ETag: '"a"' };

  test('to an earlier time does not extend the lifetime of a stored response', async (t) => {
    for (const back of [2, 600, 2_999, 5_000, 86_400]) {
      const rig = await startRig(t, counting(anHour));
      await rig.ask();
      rig.pass(3_000);
      await rig.setClock(-back);
      rig.pass(601);
      await rig.ask();
      assert.equal(rig.requests.length, 2, `${back} s`);
    }
  });

  test('to an earlier time than that of a stored response leads to one validation', async (t) => {
    const rig = await startRig(t, (request, response, count) => {
      const isKnown = request.headers['if-none-match'] === '"a"';
      response.writeHead(isKnown ? 304 : 200, anHour).end(isKnown ? '' : `answer ${count}`);
    });
    await rig.ask();
    await rig.setClock(-60);
    assert.deepEqual((await rig.ask()).cache, 'stale');
    assert.equal((await rig.ask()).cache, 'hit');
    rig.pass(60);
    assert.equal((await rig.ask()).cache, 'hit');
    assert.equal(rig.requests.length, 2);
  });

  test('back and forth does not change the age of a stored response', async (t) => {
    const rig = await startRig(t, counting(anHour));
    await rig.ask();
    rig.pass(100);
    await rig.setClock(-50);
    assert.equal((await rig.ask()).field('age'), '100');
    await rig.setClock(50);
    assert.equal((await rig.ask()).field('age'), '100');
    assert.equal(rig.requests.length, 1);
  });
});

suite('a stored response of one client', () => {
  test('is not for a client with another value of a field in Vary', async (t) => {
    const { ask } = await startRig(t, (request, response) => {
      response.writeHead(200, { ...anHour, Vary: 'Accept-Language, X-Shop' });
      response.end(
        `${request.headers['accept-language'] ?? ''} ${String(request.headers['x-shop'])}`,
      );
    });
    const asked: readonly (readonly [string, string, string])[] = [
      ['de', '1', 'uri-miss'],
      ['en', '1', 'vary-miss'],
      ['de', '2', 'vary-miss'],
      ['de', '1', 'hit'],
      ['DE;q=1', ' 1', 'hit'],
      ['en', '1', 'hit'],
    ];
    for (const [language, shop, cache] of asked) {
      const answer = await ask({ fields: { 'accept-language': language, 'x-shop': shop } });
      assert.equal(answer.cache, cache);
      assert.equal(answer.text.toLowerCase().slice(0, 2), language.toLowerCase().slice(0, 2));
    }
  });

  test('is for all clients for whom the source gets the same values', async (t) => {
    const { ask, requests } = await startRig(t, counting({ ...anHour, Vary: 'Cookie, X-Key' }), {
      enginedata: { headers: { 'X-Key': 'ours' } },
    });
    await ask({ fields: { cookie: 'a=1' } });
    assert.equal((await ask({ fields: { cookie: 'a=2', 'x-key': 'theirs' } })).cache, 'hit');
    assert.equal(requests.length, 1);
  });

  test('is not for others if the source got credentials', async (t) => {
    const pass = ['authorization'];
    const { ask } = await startRig(t, counting(anHour), { enginedata: { pass } });
    const mine = { authorization: 'Basic x' };
    assert.equal((await ask({ fields: mine })).text, 'answer 1');
    assert.equal((await ask()).text, 'answer 2');
    assert.equal((await ask({ fields: mine })).text, 'answer 2');
  });

  test('is not used any more after its rule was edited', async (t) => {
    const { ask, rule } = await startRig(t, counting(anHour));
    await ask();
    const edits = [{ headers: { 'x-a': '1' } }, { methods: ['GET'] }, { pass: ['cookie'] }];
    for (const [at, edit] of edits.entries()) {
      const edited = fetchRule({ ...rule.enginedata, ...edit });
      assert.equal((await ask({ rule: edited })).text, `answer ${at + 2}`);
    }
    const moved = fetchRule({ ...rule.enginedata }, { id: 'r2' });
    assert.equal((await ask({ rule: moved })).text, 'answer 5');
  });

  test('is not used for no-store and If-Match, and stays stored', async (t) => {
    const { ask } = await startRig(t, counting(anHour));
    await ask();
    assert.equal((await ask({ fields: { 'cache-control': 'no-store' } })).text, 'answer 2');
    assert.equal((await ask({ fields: { 'if-match': '"x"' } })).text, 'answer 3');
    assert.equal((await ask()).text, 'answer 1');
  });
});

suite('a stale response', () => {
  test('is validated with its entity tag and date, and is fresh again after a 304', async (t) => {
    const rig = await startRig(t, (request, response, count) => {
      const { 'if-none-match': tag, 'if-modified-since': date } = request.headers;
      assert.equal(tag, count === 1 ? undefined : '"x"');
      assert.equal(date, count === 1 ? undefined : 'Fri, 02 Jan 2026 12:00:00 GMT');
      response.writeHead(count === 1 ? 200 : 304, {
        'Cache-Control': 'max-age=10',
        ETag: '"x"',
        'Last-Modified': 'Fri, 02 Jan 2026 12:00:00 GMT',
        'X-Count': String(count),
      });
      response.end(count === 1 ? 'kept' : undefined);
    });
    await rig.ask();
    rig.pass(11);
    const confirmed = await rig.ask();
    assert.deepEqual([confirmed.status, confirmed.text, confirmed.cache], [200, 'kept', 'stale']);
    assert.equal(confirmed.field('x-count'), '2');
    assert.match(confirmed.field('cache-status') ?? '', /fwd-status=304; stored/);
    rig.pass(9);
    const kept = await rig.ask();
    assert.deepEqual([kept.cache, kept.field('age'), kept.field('x-count')], ['hit', '9', '2']);
    assert.equal(rig.requests.length, 2);
  });

  test('is a 304 for a client that has it, after the source has validated it', async (t) => {
    const rig = await startRig(t, tagged('"x"', { 'Cache-Control': 'max-age=10' }));
    await rig.ask();
    rig.pass(11);
    const answer = await rig.ask({ fields: { 'if-none-match': '"x"' } });
    assert.deepEqual([answer.status, answer.cache], [304, 'stale']);
  });

  test('is replaced by a new one', async (t) => {
    const rig = await startRig(t, counting({ 'Cache-Control': 'max-age=10', ETag: '"x"' }));
    await rig.ask();
    rig.pass(11);
    assert.equal((await rig.ask()).text, 'answer 2');
    assert.equal((await rig.ask()).text, 'answer 2');
  });

  test('is requested without validators after a 304 with an unknown entity tag', async (t) => {
    const rig = await startRig(t, (request, response, count) => {
      const isAsked = request.headers['if-none-match'] !== undefined;
      response.writeHead(isAsked ? 304 : 200, { ETag: isAsked ? '"y"' : '"x"' });
      response.end(isAsked ? undefined : `answer ${count}`);
    });
    await rig.ask();
    assert.equal((await rig.ask()).text, 'answer 3');
  });

  test('of another language is used for a second language after a 304 that selects it', async (t) => {
    const rig = await startRig(t, tagged('"x"', { ...anHour, Vary: 'Accept-Language' }));
    await rig.ask({ fields: { 'accept-language': 'de' } });
    const selected = await rig.ask({ fields: { 'accept-language': 'fr' } });
    assert.deepEqual([selected.text, selected.cache], ['answer 1', 'vary-miss']);
    assert.equal((await rig.ask({ fields: { 'accept-language': 'fr' } })).cache, 'hit');
    assert.equal((await rig.ask({ fields: { 'accept-language': 'de' } })).cache, 'hit');
    assert.equal(rig.requests.length, 2);
  });

  for (const method of ['GET', 'HEAD']) {
    test(`varies by the Vary of a later ${method} response`, async (t) => {
      const { ask, pass } = await startRig(t, (request, response, count) => {
        const tag = `"${request.headers['accept-language'] ?? ''}"`;
        const isKnown = request.headers['if-none-match'] === tag;
        const fields = { 'Cache-Control': 'max-age=10', ETag: tag, 'Content-Length': 2 };
        const vary = count === 1 ? {} : { Vary: 'Accept-Language' };
        response.writeHead(isKnown ? 304 : 200, { ...fields, ...vary });
        response.end(isKnown || request.method === 'HEAD' ? undefined : tag.slice(1, -1));
      });
      const german = { 'accept-language': 'de' };
      await ask({ fields: german });
      pass(11);
      await ask({ method, fields: german });
      const english = await ask({ fields: { 'accept-language': 'en' } });
      assert.deepEqual([english.text, english.cache], ['en', 'vary-miss']);
      assert.equal((await ask({ fields: german })).cache, 'hit');
    });
  }

  test('is sent at once within stale-while-revalidate, and replaced in the background', async (t) => {
    const fields = { 'Cache-Control': 'max-age=10, stale-while-revalidate=10' };
    const replaced = Promise.withResolvers<undefined>();
    const rig = await startRig(t, (_, response, count) => {
      response.writeHead(200, fields).end(`answer ${count}`);
      if (count === 2) replaced.resolve(undefined);
    });
    await rig.ask();
    rig.pass(15);
    const stale = await rig.ask();
    assert.deepEqual(
      [stale.text, stale.field('cache-status')],
      ['answer 1', 'waymark; hit; ttl=-5'],
    );
    await replaced.promise;
    let text = stale.text;
    while (text === 'answer 1') {
      await turn();
      ({ text } = await rig.ask());
    }
    assert.deepEqual([text, rig.requests.length], ['answer 2', 2]);
  });

  const standIns: readonly (readonly [string, number, number])[] = [
    ['max-age=10', 503, 503],
    ['max-age=10, stale-if-error=60', 503, 200],
    ['max-age=10, stale-if-error=60', 404, 404],
    ['max-age=10, stale-if-error=4', 503, 503],
    ['max-age=10, stale-if-error=60, must-revalidate', 500, 500],
  ];
  for (const [cacheControl, status, seen] of standIns) {
    test(`with ${cacheControl} becomes ${seen} when the source responds with ${status}`, async (t) => {
      const rig = await startRig(t, (_, response, count) => {
        response.writeHead(count === 1 ? 200 : status, { 'Cache-Control': cacheControl });
        response.end(`answer ${count}`);
      });
      await rig.ask();
      rig.pass(15);
      const answer = await rig.ask();
      assert.deepEqual(
        [answer.status, answer.text],
        [seen, seen === 200 ? 'answer 1' : 'answer 2'],
      );
      assert.equal(answer.cache, 'stale');
    });
  }

  const gone: readonly (readonly [number, string])[] = [
    [404, ''],
    [410, 'no-store'],
    [200, 'private'],
    [302, 'no-store'],
  ];
  for (const [status, cacheControl] of gone) {
    test(`is not sent any more after the source has sent ${status} ${cacheControl}`, async (t) => {
      const rig = await startRig(t, (_, response, count) => {
        const first = { 'Cache-Control': 'max-age=10, stale-while-revalidate=600' };
        const later = cacheControl === '' ? {} : { 'Cache-Control': cacheControl };
        response.writeHead(count === 1 ? 200 : status, count === 1 ? first : later);
        response.end(`answer ${count}`);
      });
      const { ask, pass } = rig;
      await ask();
      pass(20);
      assert.equal((await ask()).text, 'answer 1');
      let seen = await ask();
      while (seen.text === 'answer 1') {
        await turn();
        seen = await ask();
      }
      assert.equal(seen.status, status);
      await rig.stopSource();
      await assert.rejects(ask(), { code: 'bad_gateway' });
    });
  }

  test('is sent while its source is down, unless it has must-revalidate', async (t) => {
    const rig = await startRig(t, (request, response) => {
      const more = request.url === '/strict' ? ', must-revalidate' : '';
      response.writeHead(200, { 'Cache-Control': `max-age=10${more}` }).end('kept');
    });
    await rig.ask();
    await rig.ask({ path: '/shop/strict' });
    rig.pass(15);
    await rig.stopSource();
    const answer = await rig.ask();
    assert.deepEqual([answer.status, answer.text, answer.field('age')], [200, 'kept', '15']);
    await assert.rejects(rig.ask({ path: '/shop/strict' }), { code: 'bad_gateway' });
    await assert.rejects(rig.ask({ path: '/shop/new' }), { code: 'bad_gateway' });
    rig.pass(3600);
    await assert.rejects(rig.ask(), { code: 'bad_gateway' });
  });
});

suite('after an unsafe request (RFC 9111 §4.4)', () => {
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'OPTIONS', 'M-SEARCH'];
  const cases: readonly (readonly [string, number, string])[] = [
    ['POST', 200, 'answer 3'],
    ['PUT', 204, 'answer 3'],
    ['PUT', 302, 'answer 3'],
    ['M-SEARCH', 200, 'answer 3'],
    ['POST', 404, 'answer 1'],
    ['PUT', 500, 'answer 1'],
    ['OPTIONS', 200, 'answer 1'],
  ];
  for (const [method, status, text] of cases) {
    test(`${method} with ${status}, ${text} is sent`, async (t) => {
      const { ask } = await startRig(
        t,
        (request, response, count) => {
          response.writeHead(request.method === 'GET' ? 200 : status, anHour);
          response.end(`answer ${count}`);
        },
        { enginedata: { methods } },
      );
      await ask();
      assert.equal((await ask({ method })).status, status);
      assert.equal((await ask()).text, text);
    });
  }

  test('URLs of the same origin in Location and Content-Location are requested again', async (t) => {
    const { ask } = await startRig(
      t,
      (request, response, count) => {
        const places = { Location: '/a', 'Content-Location': 'http://else.example/b' };
        response.writeHead(200, request.method === 'POST' ? places : anHour).end(`answer ${count}`);
      },
      { enginedata: { methods } },
    );
    await ask({ path: '/shop/a' });
    await ask({ path: '/shop/b' });
    await ask({ path: '/shop/c', method: 'POST' });
    assert.equal((await ask({ path: '/shop/a' })).text, 'answer 4');
    assert.equal((await ask({ path: '/shop/b' })).text, 'answer 2');
  });
});

suite('the response to a HEAD (RFC 9111 §4.3.5)', () => {
  const cases: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
    ['freshens', { ETag: '"x"', 'Cache-Control': 'max-age=100' }, 'answer 1'],
    ['freshens, without validators,', { 'Cache-Control': 'max-age=100' }, 'answer 1'],
    [
      'removes, by another entity tag,',
      { ETag: '"y"', 'Cache-Control': 'max-age=100' },
      'answer 3',
    ],
    [
      'removes, by another length,',
      { 'Content-Length': '99', 'Cache-Control': 'max-age=100' },
      'answer 3',
    ],
  ];
  for (const [what, fields, text] of cases) {
    test(`${what} the stored response: ${JSON.stringify(fields)}`, async (t) => {
      const rig = await startRig(t, (request, response, count) => {
        const first = { ETag: '"x"', 'Cache-Control': 'max-age=10' };
        response.writeHead(200, request.method === 'HEAD' ? fields : first);
        response.end(request.method === 'HEAD' ? undefined : `answer ${count}`);
      });
      await rig.ask();
      rig.pass(15);
      await rig.ask({ method: 'HEAD' });
      assert.equal((await rig.ask()).text, text);
    });
  }
});

suite('a stored range', () => {
  test('answers requests for ranges within it', async (t) => {
    const { ask, requests } = await startRig(t, (request, response) => {
      assert.equal(request.headers.range, 'bytes=4-8');
      response.writeHead(206, { ...anHour, ETag: '"x"', 'Content-Range': 'bytes 4-8/10' });
      response.end('45678');
    });
    const first = await ask({ fields: { range: 'bytes=4-8' } });
    assert.deepEqual([first.status, first.text], [206, '45678']);
    const second = await ask({ fields: { range: 'bytes=5-6' } });
    assert.deepEqual([second.status, second.text, second.cache], [206, '56', 'hit']);
    assert.equal(second.field('content-range'), 'bytes 5-6/10');
    assert.equal(requests.length, 1);
  });

  test('that is stale is requested again, and nothing else', async (t) => {
    for (const cacheControl of ['max-age=10', 'max-age=10, stale-while-revalidate=60']) {
      const rig = await startRig(t, (request, response, count) => {
        const { range } = request.headers;
        const fields = { 'Cache-Control': cacheControl, ETag: '"x"' };
        if (range !== 'bytes=4-5') response.writeHead(200, fields).end('the whole film');
        else {
          response.writeHead(206, { ...fields, 'Content-Range': 'bytes 4-5/10' });
          response.end(`p${count}`);
        }
      });
      const { ask, pass, requests } = rig;
      const fields = { range: 'bytes=4-5' };
      await ask({ fields });
      pass(11);
      const isMeanwhile = cacheControl.includes('while');
      const again = await ask({ fields });
      assert.deepEqual([again.status, again.text], [206, isMeanwhile ? 'p1' : 'p2']);
      while ((await ask({ fields })).text !== 'p2') await turn();
      assert.deepEqual(
        requests.map((one) => one.headers.range),
        ['bytes=4-5', 'bytes=4-5'],
      );
      await rig.stopSource();
      pass(80);
      assert.equal((await ask({ fields })).text, 'p2');
    }
  });

  test('that does not exist (416) is not used for other ranges', async (t) => {
    const { ask } = await startRig(t, ({ headers: { range } }, response) => {
      const isBeyond = range === 'bytes=99-';
      const beyond = { 'Content-Range': 'bytes */5' };
      response.writeHead(isBeyond ? 416 : 200, { ...anHour, ...(isBeyond && beyond) });
      response.end(isBeyond ? undefined : 'whole');
    });
    assert.equal((await ask({ fields: { range: 'bytes=99-' } })).status, 416);
    const whole = await ask();
    assert.deepEqual([whole.status, whole.text], [200, 'whole']);
  });

  test('whose length differs from its Content-Range is not stored', async (t) => {
    const { ask } = await startRig(t, (_, response, count) => {
      response.writeHead(206, { ...anHour, 'Content-Range': 'bytes 4-9/10' }).end(`0123${count}`);
    });
    await ask({ fields: { range: 'bytes=4-9' } });
    assert.equal((await ask({ fields: { range: 'bytes=4-9' } })).text, '01232');
  });
});

suite('a private response', () => {
  const mine = { 'Cache-Control': 'private, max-age=60' };

  test('is a 304 for a client that has it, by the cache or by the source', async (t) => {
    const rig = await startRig(t, tagged('"x"', mine));
    const fields = { 'if-none-match': '"x"' };
    const first = await rig.ask({ fields });
    assert.deepEqual([first.status, first.field('etag'), first.text], [304, '"x"', '']);
    // The response cannot be shared, so the source gets the request of the client.
    const second = await rig.ask({ fields });
    assert.deepEqual([second.status, second.text], [304, '']);
    const seen = rig.requests.map((request) => request.headers['if-none-match']);
    assert.deepEqual(seen, [undefined, '"x"']);
    assert.equal((await rig.ask()).text, 'answer 3');
  });

  test('is sent whole to a client with another entity tag', async (t) => {
    const rig = await startRig(t, tagged('"x"', mine));
    const answer = await rig.ask({ fields: { 'if-none-match': '"y"' } });
    assert.deepEqual([answer.status, answer.text], [200, 'answer 1']);
  });
});

test('only-if-cached without a stored response gets 504', async (t) => {
  const { ask, requests } = await startRig(t, counting(anHour));
  const fields = { 'cache-control': 'only-if-cached' };
  assert.equal((await ask({ fields })).status, 504);
  await ask();
  assert.equal((await ask({ fields })).text, 'answer 1');
  assert.equal(requests.length, 1);
});

test('private fields go to the client whose request fetched the response', async (t) => {
  const { ask } = await startRig(
    t,
    counting({ 'Cache-Control': 'max-age=10, no-cache="set-cookie"', 'Set-Cookie': 'a=b' }),
  );
  assert.equal((await ask()).field('set-cookie'), 'a=b; Path=/shop/');
  const second = await ask();
  assert.deepEqual([second.cache, second.field('set-cookie')], ['hit', undefined]);
});

test('private fields of a validation go to its client, not to those that wait for it', async (t) => {
  const cases = [
    ['max-age=10, private="set-cookie"', true],
    ['private, max-age=10', false],
  ] as const;
  for (const [cacheControl, isStored] of cases) {
    const { ask, pass } = await startRig(t, (request, response, count) => {
      const isKnown = request.headers['if-none-match'] !== undefined;
      const personal = { 'Cache-Control': cacheControl, 'Set-Cookie': `visit=${count}` };
      response.writeHead(isKnown ? 304 : 200, {
        ETag: '"x"',
        ...(isKnown ? personal : { 'Cache-Control': 'max-age=10' }),
      });
      response.end(isKnown ? undefined : 'page');
    });
    await ask();
    pass(11);
    const answers = await Promise.all([ask(), ask(), ask()]);
    const [first] = answers;
    const cookies = answers.map((one) => one.field('set-cookie'));
    assert.deepEqual(
      answers.map((one) => one.text),
      ['page', 'page', 'page'],
    );
    assert.equal(cookies[0], 'visit=2; Path=/shop/');
    assert.equal(cookies.filter((one) => one === 'visit=2; Path=/shop/').length, 1, cacheControl);
    assert.equal(first.field('cache-status')?.includes('; stored'), isStored);
    assert.equal((await ask()).cache, isStored ? 'hit' : 'uri-miss');
  }
});

test('a stored response is removed after a HEAD with Cache-Control: private', async (t) => {
  const { ask } = await startRig(t, (request, response, count) => {
    const cacheControl = request.method === 'HEAD' ? 'private' : 'max-age=10';
    response.writeHead(200, { ETag: '"x"', 'Cache-Control': cacheControl, 'Content-Length': 1 });
    response.end(request.method === 'HEAD' ? undefined : String(count));
  });
  await ask();
  await ask({ method: 'HEAD', fields: { 'cache-control': 'no-cache' } });
  const after = await ask();
  assert.deepEqual([after.cache, after.text], ['uri-miss', '3']);
});

test('a stored response that can neither be read nor removed is requested again', async (t) => {
  const unreadable = { ready: () => Promise.resolve(false) };
  const { ask } = await startRig(t, counting(anHour), {
    answersOf: (answers) => Object.assign(answers, unreadable),
  });
  assert.equal((await ask()).text, 'answer 1');
  assert.equal((await ask()).text, 'answer 2');
});
