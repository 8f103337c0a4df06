import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { suite, test } from 'node:test';
import { seen, startRig, type Handler } from './rig.ts';

/** An application that answers by one field of the request, and names it in no Vary. */
const answeringBy =
  (name: string): Handler =>
  ({ headers }, response) => {
    response.writeHead(200, { 'Cache-Control': 'max-age=60' });
    response.end(`page ${String(headers[name])}`);
  };

const application = { as: 'application' };

suite('a field by which an application answers something else', () => {
  const bypasses: readonly (readonly [name: string, value: string])[] = [
    ['x-http-method-override', 'DELETE'],
    ['x-http-method', 'MERGE'],
    ['x-method-override', 'POST'],
    ['x-original-uri', '/admin'],
    ['x-override-url', '/admin'],
    ['x-http-destinationurl', '/admin'],
    ['x-ms-original-url', '/admin'],
    ['x-envoy-original-path', '/admin'],
    ['x-invoke-path', '/404'],
    ['x-invoke-status', '404'],
    ['x-matched-path', '/404'],
    ['x-now-route-matches', '1=404'],
    ['x-middleware-subrequest', 'middleware'],
    ['x-sendfile-type', 'X-Accel-Redirect'],
    ['x-accel-mapping', '/=/files/'],
    ['translate', 'f'],
    ['destination', 'https://evil.example/'],
    ['x-original-method', 'POST'],
    ['path-info', '/admin'],
    ['x-amz-server-side-encryption-customer-key', 'a'],
    ['x-ms-version', '2009-09-19'],
    ['x-goog-user-project', 'a'],
    ['x-middleware-override-headers', 'cookie'],
    ['x-astro-path', '/admin'],
    ['x-react-router-spa-mode', 'yes'],
  ];
  for (const [name, value] of bypasses) {
    test(`${name} is another request: neither from the cache nor into it`, async (t) => {
      const { ask, requests } = await startRig(t, answeringBy(name), { enginedata: application });
      const fields = { [name]: value };
      assert.equal((await ask({ fields })).text, `page ${value}`);
      const other = await ask();
      assert.deepEqual([other.text, other.cache], ['page undefined', 'uri-miss']);
      const again = await ask({ fields });
      assert.deepEqual([again.text, again.cache], [`page ${value}`, 'bypass']);
      const hit = await ask();
      assert.deepEqual([hit.text, hit.cache, requests.length], ['page undefined', 'hit', 3]);
    });
  }

  const variants: readonly (readonly [name: string, value: string])[] = [
    ['x-host', 'evil.example'],
    ['x-original-host', 'evil.example'],
    ['x-http-host-override', 'evil.example'],
    ['x-scheme', 'http'],
    ['x-url-scheme', 'http'],
    ['front-end-https', 'off'],
    ['x-original-port', '1'],
    ['x-script-name', '/evil'],
    ['x-requested-with', 'XMLHttpRequest'],
    ['x-pjax', 'true'],
    ['hx-request', 'true'],
    ['turbo-frame', 'cart'],
    ['rsc', '1'],
    ['x-middleware-prefetch', '1'],
    ['sec-purpose', 'prefetch'],
    ['x-forward-host', 'evil.example'],
    ['x-ssl', 'off'],
    ['cf-visitor', '{"scheme":"http"}'],
    ['cf-ipcountry', 'XX'],
    ['cloudfront-viewer-country', 'XX'],
    ['cloudfront-is-mobile-viewer', 'true'],
    ['x-wap-profile', 'http://evil.example/uaprof.xml'],
    ['x-operamini-phone-ua', 'Nokia'],
    ['prefer', 'return=minimal'],
    ['x-locale', 'xx'],
    ['x-debug', '1'],
  ];
  for (const [name, value] of variants) {
    test(`${name} is a variant: its answer is for requests with the same value`, async (t) => {
      const { ask, requests } = await startRig(t, answeringBy(name), { enginedata: application });
      const fields = { [name]: value };
      assert.equal((await ask({ fields })).text, `page ${value}`);
      assert.equal((await ask()).text, 'page undefined');
      assert.equal((await ask({ fields: { [name]: 'else' } })).text, 'page else');
      for (const [asked, text] of [
        [fields, `page ${value}`],
        [{}, 'page undefined'],
      ] as const) {
        const again = await ask({ fields: asked });
        assert.deepEqual([again.text, again.cache], [text, 'hit']);
      }
      assert.equal(requests.length, 3);
    });
  }

  const dropped = [
    ...['x-original-url', 'x-rewrite-url', 'forwarded', 'x-forwarded-host', 'x-forwarded-scheme'],
    ...['x-forwarded-port', 'x-forwarded-prefix', 'x-forwarded-server', 'x-real-ip', 'proxy-host'],
    ...['x_http_method_override', 'x_host'],
  ];
  for (const name of dropped) {
    test(`${name} of a client reaches no source, so the cache answers`, async (t) => {
      const { ask, requests } = await startRig(t, answeringBy('x-none'), {
        enginedata: application,
      });
      await ask();
      const fields = { [name]: 'evil.example' };
      assert.equal((await ask({ fields })).cache, 'hit');
      await ask({ path: '/shop/other', fields });
      assert.doesNotMatch(JSON.stringify(requests.at(-1)?.headers), /evil/);
    });
  }

  const addresses = [
    ...['client-ip', 'true-client-ip', 'x-client-ip', 'cf-connecting-ip', 'fastly-client-ip'],
    ...['x-cluster-client-ip', 'x-original-forwarded-for', 'remote-addr', 'x-remote-ip'],
  ];
  for (const name of addresses) {
    test(`${name} with an address that the client does not have reaches no source`, async (t) => {
      const { ask, requests } = await startRig(t, answeringBy(name), { enginedata: application });
      for (const value of [
        '203.0.113.9',
        '192.0.2.7, 203.0.113.9',
        '192.0.2.7:80',
        'unknown',
        '',
      ]) {
        const path = `/shop/${value}`;
        assert.equal((await ask({ path, fields: { [name]: value } })).text, 'page undefined');
        assert.equal((await ask({ path })).cache, 'hit', value);
        assert.equal(requests.at(-1)?.headers[name], undefined);
      }
    });
  }

  test('an address that the client has reaches the source, as X-Forwarded-For', async (t) => {
    const { ask, requests } = await startRig(t, answeringBy('cf-connecting-ip'), {
      enginedata: application,
    });
    await ask({ fields: { 'cf-connecting-ip': '192.0.2.7', 'x-client-ip': '::ffff:192.0.2.7' } });
    const { headers } = requests[0] ?? {};
    assert.equal(headers?.['cf-connecting-ip'], '192.0.2.7');
    assert.equal(headers['x-forwarded-for'], '192.0.2.7');
  });

  test('an address that `pass` lets through is for its client alone, unless it is true', async (t) => {
    const { ask } = await startRig(t, answeringBy('client-ip'), {
      enginedata: { pass: ['client-ip'] },
    });
    for (const [value, cache] of [
      ['203.0.113.9', 'bypass'],
      ['192.0.2.7', 'uri-miss'],
      ['203.0.113.9', 'bypass'],
      ['192.0.2.7', 'hit'],
    ] as const) {
      const got = await ask({ fields: { 'client-ip': value } });
      assert.deepEqual([got.text, got.cache], [`page ${value}`, cache]);
    }
  });

  test('numbers that load balancers give each request change nothing', async (t) => {
    const { ask } = await startRig(t, answeringBy('x-none'), { enginedata: application });
    await ask({ fields: { 'x-amzn-trace-id': 'Root=1' } });
    const fields = { 'x-amzn-trace-id': 'Root=2', 'x-amz-cf-id': 'a', 'cf-ray': 'b' };
    assert.equal((await ask({ fields })).cache, 'hit');
  });

  test('counts in each spelling that `pass` lets through', async (t) => {
    const { ask } = await startRig(t, answeringBy('x_method_override'), {
      enginedata: { pass: ['x_method_override', 'x-original-url'] },
    });
    for (const name of ['x_method_override', 'x-original-url']) {
      assert.equal((await ask({ fields: { [name]: 'DELETE' } })).cache, 'bypass', name);
    }
  });

  test('does not count where the rule sets it for all', async (t) => {
    const { ask } = await startRig(t, answeringBy('x-host'), {
      enginedata: { headers: { 'X-Host': 'shop.example' } },
    });
    await ask({ fields: { 'x-host': 'evil.example' } });
    const hit = await ask();
    assert.deepEqual([hit.text, hit.cache], ['page shop.example', 'hit']);
  });

  for (const [made, of, caches] of [
    ['x-host', 'x-site', ['uri-miss', 'vary-miss', 'hit']],
    ['x-site', 'x-host', ['uri-miss', 'vary-miss', 'hit']],
    ['x-method-override', 'x-site', ['bypass', 'bypass', 'bypass']],
  ] as const) {
    test(`counts where the rule makes ${made} of the ${of} of the client`, async (t) => {
      const { ask } = await startRig(t, answeringBy(made), {
        enginedata: { request_headers: { [made]: `\${request.header.${of}}` } },
      });
      const seen: (string | undefined)[] = [];
      for (const value of ['shop.example', 'evil.example', 'shop.example']) {
        const answer = await ask({ fields: { [of]: value } });
        assert.equal(answer.text, `page ${value}`);
        seen.push(answer.cache);
      }
      assert.deepEqual(seen, caches);
      assert.equal((await ask()).text, 'page undefined');
    });
  }

  test('keeps the answer to a POST out of the cache, too', async (t) => {
    const { ask } = await startRig(
      t,
      (request, response, count) => {
        response.writeHead(200, { 'Cache-Control': 'max-age=60', 'Content-Location': '/shop/' });
        response.end(`${request.method} ${count}`);
      },
      { enginedata: application },
    );
    await ask({ method: 'POST', fields: { 'x-http-method-override': 'DELETE' } });
    assert.equal((await ask()).text, 'GET 2');
  });
});

test('content of a GET is in no key: its answer is for its client alone', async (t) => {
  const { ask, reply } = await startRig(t, (_, response, count) => {
    response.writeHead(200, { 'Cache-Control': 'max-age=60' }).end(`answer ${count}`);
  });
  const withContent = { body: Readable.from([Buffer.from('{}')]), method: 'GET' };
  assert.deepEqual((await seen(await reply(withContent))).cache, 'bypass');
  assert.equal((await ask()).text, 'answer 2');
});

suite('a response that implies a Vary has it', () => {
  const cases = [
    ['accept-encoding', { 'Content-Encoding': 'br' }, ['br', 'gzip', undefined]],
    ['accept-encoding', { 'Content-Encoding': 'br', Vary: 'X-A' }, ['br', 'gzip', undefined]],
    [
      'origin',
      { 'Access-Control-Allow-Origin': 'https://a.example' },
      ['https://a.example', undefined],
    ],
  ] as const;
  for (const [name, fields, values] of cases) {
    test(`${JSON.stringify(fields)}: ${name}`, async (t) => {
      const { ask, pass, requests } = await startRig(t, (request, response) => {
        const etag = JSON.stringify(request.headers[name] ?? '');
        const isKnown = request.headers['if-none-match']?.includes(etag) === true;
        response.writeHead(isKnown ? 304 : 200, {
          ...{ ...fields, 'Cache-Control': 'max-age=60', ETag: etag },
        });
        response.end(isKnown ? undefined : `page for ${request.headers[name]}`);
      });
      for (const round of [0, 1, 2]) {
        for (const value of values) {
          const answer = await ask({ fields: value === undefined ? {} : { [name]: value } });
          assert.equal(answer.text, `page for ${value}`);
          assert.match(answer.field('vary')?.toLowerCase() ?? '', new RegExp(name));
        }
        // The last round validates what is stored.
        if (round === 1) pass(61);
      }
      assert.equal(requests.length, 2 * values.length);
    });
  }

  test('and none is added to a response for all', async (t) => {
    const { ask } = await startRig(t, (_, response) => {
      const fields = { 'Access-Control-Allow-Origin': '*', 'Content-Encoding': 'identity' };
      response.writeHead(200, { ...fields, 'Cache-Control': 'max-age=60' }).end('page');
    });
    await ask({ fields: { origin: 'https://a.example' } });
    const hit = await ask();
    assert.deepEqual([hit.cache, hit.field('vary')], ['hit', undefined]);
  });
});
