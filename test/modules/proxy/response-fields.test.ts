import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { responseFields, trailerFields } from '../../../src/modules/proxy/response-fields.ts';
import { fetchPlan, sourceTargets } from '../../../src/modules/proxy/fetch-plan.ts';
import { pathOf } from '../../request-path.ts';
import { fetchRule } from './fetch-rig.ts';

suite('the fields of an answer that the client gets', () => {
  const seen = (fields: readonly string[], pass: readonly string[] = [], path = '/shop/*') => {
    const source = `http://src.example/base/${path.endsWith('*') ? '*' : ''}`;
    const plan = fetchPlan(fetchRule({ source, pass }, { path }));
    const asked = path.replace('*', 'a');
    const [way] = sourceTargets(plan, { ...pathOf(asked), query: '' });
    assert.ok(way !== undefined);
    const place = { plan, ...way, origin: 'http://visible.example', path: asked };
    return responseFields({ fields, version: '1.1' }, place);
  };
  const via = ['Via', '1.1 waymark'];

  test('are forwarded unchanged and in order', () => {
    const fields = [
      ...['Content-Type', 'text/html', 'ETag', 'W/"x"', 'content-encoding', 'br'],
      ...['Vary', 'Accept', 'vary', 'Cookie', 'Age', '7', 'Cache-Control', 'max-age=9'],
      ...['Content-Length', '5', 'X-Odd', 'caf\xe9', 'Proxy-Status', 'x; error=y'],
      ...['Date', 'Wed, 21 Oct 2015 07:28:00 GMT', 'Via', '1.1 before'],
    ];
    assert.deepEqual(seen(fields), [...fields, ...via]);
  });

  const dropped: readonly (readonly string[])[] = [
    ['Connection', 'close'],
    ['Connection', 'X-Hop', 'x-hop', '1'],
    ['x-hop', '1', 'connection', 'x-a, X-HOP', 'Connection', 'X-B', 'X-b', '2', 'X-A', '3'],
    ['Keep-Alive', 'timeout=5', 'Proxy-Authenticate', 'Basic', 'Proxy-Connection', 'close'],
    ['Transfer-Encoding', 'chunked', 'Trailer', 'X', 'TE', 'x', 'Upgrade', 'h2c'],
    ['Server-Timing', 'x', 'Alt-Svc', 'h3=":443"'],
  ];
  for (const fields of dropped) {
    test(`do not include ${fields.join(' ')}`, () => {
      assert.deepEqual(seen([...fields, 'ETag', '"x"']), ['ETag', '"x"', ...via]);
    });
  }

  test('have visible URLs and cookies, each line by itself', () => {
    assert.deepEqual(
      seen([
        ...['location', 'http://src.example/base/x', 'Content-Location', '/base/y'],
        ...['Set-Cookie', 'a=1; Path=/base/', 'Set-Cookie', 'b=2; Domain=src.example'],
      ]),
      [
        ...['location', 'http://visible.example/shop/x', 'Content-Location', '/shop/y'],
        ...['Set-Cookie', 'a=1; Path=/shop/', 'Set-Cookie', 'b=2; Path=/shop/', ...via],
      ],
    );
  });

  const named: readonly (readonly [string, string])[] = [
    ['Server', 'nginx/1.2.3'],
    ['X-Powered-By', 'PHP/5'],
    ['X-AspNet-Version', '4'],
    ['X-Accel-Redirect', '/internal/keys'],
    ['X-Sendfile', '/etc/passwd'],
  ];
  for (const field of named) {
    test(`include ${field.join(': ')} only if the rule passes it`, () => {
      for (const path of ['/shop/*', '/*']) {
        assert.deepEqual(seen(field, [], path), via);
        assert.deepEqual(seen(field, [field[0]], path), [...field, ...via]);
      }
    });
  }

  const ofWholeOrigin: readonly (readonly [string, string])[] = [
    ['Accept-CH', 'Sec-CH-UA-Model'],
    ['Clear-Site-Data', '"*"'],
    ['Critical-CH', 'Sec-CH-UA-Model'],
    ['NEL', '{"report_to": "a", "max_age": 9}'],
    ['Origin-Agent-Cluster', '?1'],
    ['Public-Key-Pins', 'max-age=9; pin-sha256="x"'],
    ['Report-To', '{}'],
    ['Reporting-Endpoints', 'a="https://src.example/r"'],
    ['Secure-Session-Registration', '(ES256); path="/x"'],
    ['Set-Login', 'logged-in'],
    ['Strict-Transport-Security', 'max-age=9; includeSubDomains'],
    ['Use-As-Dictionary', 'match="/*"'],
    ['Set-Cookie', '__Host-a=b; Path=/; Secure'],
  ];
  for (const field of ofWholeOrigin) {
    test(`include ${field.join(': ')} only if the rule covers the origin or passes it`, () => {
      assert.deepEqual(seen(field), via);
      assert.deepEqual(seen(field, [], '/'), via);
      assert.deepEqual(seen(field, [], '/*'), [...field, ...via]);
      assert.deepEqual(seen(field, [field[0].toUpperCase()]), [...field, ...via]);
    });
  }

  const scopes: readonly (readonly [path: string, scope: string, seen: string | undefined])[] = [
    ['/shop/*', '/', undefined],
    ['/shop/*', '/base/', '/shop/'],
    ['/shop/*', '/base/x', '/shop/x'],
    ['/shop/*', '/shop/x', '/shop/x'],
    ['/shop/*', './', '/shop/'],
    ['/shop/*', '../', undefined],
    ['/shop/*', '/shop/../', undefined],
    ['/shop/*', '/shop/%2e%2e/', undefined],
    ['/shop/*', '\\', undefined],
    ['/shop/*', 'https://other.example/shop/', undefined],
    ['/shop*', '/', '/shop'],
    ['/sw.js', '/', '/sw.js'],
    ['/*', '/', '/'],
  ];
  for (const [path, scope, visible] of scopes) {
    test(`rewrite Service-Worker-Allowed: ${scope} of a script at ${path} to ${visible ?? 'none'}`, () => {
      const type = ['Content-Type', 'text/javascript'];
      const allowed = visible === undefined ? [] : ['Service-Worker-Allowed', visible];
      assert.deepEqual(seen([...type, 'Service-Worker-Allowed', scope], [], path), [
        ...type,
        ...allowed,
        ...via,
      ]);
    });
  }

  test("confine a service worker whose folder is larger than the rule's path", () => {
    for (const [path, allowed] of [
      ['/sw.js', ['Service-Worker-Allowed', '/sw.js']],
      ['/shop*', ['Service-Worker-Allowed', '/shop']],
      ['/shop/*', []],
      ['/*', []],
    ] as const) {
      const script = ['Content-Type', 'application/JavaScript; charset=utf-8'];
      assert.deepEqual(seen(script, [], path), [...script, ...allowed, ...via]);
      assert.deepEqual(seen(script, ['service-worker-allowed'], path), [...script, ...via]);
      const page = ['Content-Type', 'text/html'];
      assert.deepEqual(seen(page, [], path), [...page, ...via]);
    }
  });

  test('leave out trailers that the rule does not allow as fields', () => {
    const fields = [...named, ...ofWholeOrigin, ['Service-Worker-Allowed', '/']].flat();
    assert.deepEqual(trailerFields([...fields, 'X-Checksum', '1']), ['X-Checksum', '1']);
  });
});
