import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../any-character.ts';
import { parseIni } from '../../ini.ts';

const env = { HERE: 'there', BRACES: '${HERE}', COMMENT: 'a ; b' };

function parse(text: string) {
  const ini = parseIni(text, { env });
  assert.deepEqual(ini.problems, []);
  return ini;
}

/** The parsed value of a key. */
function values(kind: 'server' | 'fetch' | 'auth' | 'webhook' | 'node' | 'log', lines: string) {
  return parse(`[${kind}]\n${lines}`)[kind].values as Readonly<Record<string, unknown>>;
}

function mount(lines: string) {
  const [parsed] = parse(`[disk.site]\n${lines}`).disk;
  assert.ok(parsed);
  return parsed.values;
}

suite('a value is parsed', () => {
  for (const [text, value] of [
    ['yes', true],
    ['true', true],
    ['On', true],
    ['1', true],
    ['no', false],
    ['FALSE', false],
    ['off', false],
    ['0', false],
  ] as const) {
    test(`access = ${text}`, () => {
      assert.equal(values('log', `access = ${text}`).access, value);
    });
  }

  for (const [text, ms] of [
    ['500ms', 500],
    ['3s', 3_000],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['30d', 2_592_000_000],
  ] as const) {
    test(`retry = ${text}`, () => {
      const { retry } = values('webhook', `retry = ${text}`);
      assert.deepEqual(retry, [ms]);
    });
  }

  for (const [text, bytes] of [
    ['0', 0],
    ['1500', 1500],
    ['7B', 7],
    ['64KiB', 65_536],
    ['256 mib', 268_435_456],
    ['1GiB', 1_073_741_824],
    ['10KB', 10_000],
    ['10MB', 10_000_000],
  ] as const) {
    test(`cache = ${text}`, () => {
      assert.equal(values('fetch', `cache = ${text}`).cache, bytes);
    });
  }

  for (const [text, listen] of [
    ['127.0.0.1:8080', { kind: 'tcp', scheme: 'http', host: '127.0.0.1', port: 8080 }],
    ['[::1]:8080', { kind: 'tcp', scheme: 'http', host: '::1', port: 8080 }],
    ['[FE80::1]:1', { kind: 'tcp', scheme: 'http', host: 'fe80::1', port: 1 }],
    ['LocalHost:0', { kind: 'tcp', scheme: 'http', host: 'localhost', port: 0 }],
    ['web-1.example:65535', { kind: 'tcp', scheme: 'http', host: 'web-1.example', port: 65_535 }],
    [':8080', { kind: 'tcp', scheme: 'http', host: '', port: 8080 }],
    ['*:8080', { kind: 'tcp', scheme: 'http', host: '', port: 8080 }],
    ['8080', { kind: 'tcp', scheme: 'http', host: '', port: 8080 }],
    ['http://a.b:81', { kind: 'tcp', scheme: 'http', host: 'a.b', port: 81 }],
    ['http://127.0.0.1', { kind: 'tcp', scheme: 'http', host: '127.0.0.1', port: 80 }],
    ['https://0.0.0.0:443', { kind: 'tcp', scheme: 'https', host: '0.0.0.0', port: 443 }],
    ['HTTPS://:8443', { kind: 'tcp', scheme: 'https', host: '', port: 8443 }],
    ['https://*', { kind: 'tcp', scheme: 'https', host: '', port: 443 }],
    ['https://[::1]', { kind: 'tcp', scheme: 'https', host: '::1', port: 443 }],
    ['unix:/run/w.sock', { kind: 'unix', path: '/run/w.sock' }],
    ['unix:w.sock', { kind: 'unix', path: 'w.sock' }],
  ] as const) {
    test(`listen = ${text}`, () => {
      assert.deepEqual(values('server', `listen = ${text}`).listen, [listen]);
      assert.deepEqual(values('server', `listen[] = ${text}`).listen, [listen]);
    });
  }

  for (const [text, origin] of [
    ['*', '*'],
    ['http://example.com', 'http://example.com'],
    ['HTTPS://Shop.Example.COM:443', 'https://shop.example.com'],
    ['http://example.com:80', 'http://example.com'],
    ['http://example.com:8080', 'http://example.com:8080'],
    ['http://example.com.:8080', 'http://example.com:8080'],
    ['http://127.0.0.1', 'http://127.0.0.1'],
    ['http://[::0001]:81', 'http://[::1]:81'],
    ['https://bücher.example', 'https://xn--bcher-kva.example'],
  ] as const) {
    test(`origin = ${text}`, () => {
      assert.equal(mount(`origin = ${text}`).origin, origin);
    });
  }

  for (const [text, path] of [
    ['/', '/'],
    ['/shop', '/shop/'],
    ['/shop/', '/shop/'],
    ['/caf%C3%A9', '/café/'],
    ['/café', '/café/'],
    ['/a b', '/a b/'],
    ['/100%25', '/100%/'],
    ['/%7ejoe', '/~joe/'],
    ['/.well-known', '/.well-known/'],
    ['/a...b', '/a...b/'],
  ] as const) {
    test(`path = ${text}`, () => {
      assert.equal(mount(`path = ${text}`).path, path);
    });
  }

  for (const [text, base] of [
    ['', undefined],
    ['/', ''],
    ['/app', '/app'],
    ['/app/', '/app'],
  ] as const) {
    test(`base = ${text}`, () => {
      assert.equal(values('server', `base = ${text}`).base, base);
    });
  }
});

suite('the syntax of the ini package', () => {
  for (const [written, name] of [
    ['plain', 'plain'],
    ['  spaced out  ', 'spaced out'],
    ['"in quotes"', 'in quotes'],
    ["'in quotes'", 'in quotes'],
    ["'5'", '5'],
    ['true', 'true'],
    ['null', 'null'],
    ['a = b', 'a = b'],
    ['a ; comment', 'a'],
    ['a # comment', 'a'],
    ['a\\;b\\#c', 'a;b#c'],
    ['"a ; b" ; comment', 'a ; b'],
    ["'a # b' # comment", 'a # b'],
    ['"a \\" b" ; comment', 'a " b'],
    ['"\\u00e9"', 'é'],
    ['${HERE}', 'there'],
    ['a${HERE}b${HERE}', 'atherebthere'],
    ['${BRACES}', '${HERE}'],
    ['${COMMENT}', 'a ; b'],
    ['$${HERE}', '${HERE}'],
    ['$HERE {}', '$HERE {}'],
  ] as const) {
    test(`name = ${written}`, () => {
      assert.equal(values('node', `name = ${written}`).name, name);
    });
  }

  test('allows comments, blank lines, indents and any line ends', () => {
    const text = '; c\r\n# c\r\n\r\n  [log]  ; c = d\r\n\tlevel=warn\r\n   ;x\r\nexplain  =  yes';
    const { log } = parse(text);
    assert.deepEqual([log.values.level, log.values.explain], ['warn', true]);
    assert.deepEqual([log.line, log.lines.get('level'), log.lines.get('explain')], [4, [5], [7]]);
  });

  test('joins the lists of a repeated key', () => {
    const { trust_proxy } = parse(
      '[server]\ntrust_proxy = ::1, 10.0.0.0/8\ntrust_proxy[] = 127.0.0.1',
    ).server.values;
    assert.deepEqual(
      trust_proxy.map(({ text }) => text),
      ['::1', '10.0.0.0/8', '127.0.0.1'],
    );
  });

  test('separates items of a list by commas or spaces; a list may be empty', () => {
    assert.deepEqual(mount('index = a.html, b.html c.html').index, ['a.html', 'b.html', 'c.html']);
    assert.deepEqual(mount('index =').index, []);
    assert.deepEqual(values('auth', 'anonymous =').anonymous, []);
    assert.deepEqual(values('auth', 'anonymous = read, design').anonymous, ['read', 'design']);
  });

  test('keeps dots in the names of sections', () => {
    const ini = parse(
      '[tls.WWW.example.com]\n[tls.*.example.com]\n[table.order-lines]\n[disk.a-b_1]',
    );
    assert.deepEqual(
      [...ini.hosts, ...ini.tables, ...ini.disk].map(({ name }) => name),
      ['www.example.com', '*.example.com', 'order-lines', 'a-b_1'],
    );
  });

  test('keeps the order of a mount’s header fields, and repeated ones', () => {
    const ini = parse(
      [
        '[disk.a]',
        '[disk.a.headers]',
        `Content-Security-Policy = "default-src 'self'; img-src *"`,
        'Link[] = </a>',
        'link[] = </b>',
        'X-Token = ${HERE} ; said the environment',
      ].join('\n'),
    );
    assert.deepEqual(ini.headers[0]?.fields, [
      'Content-Security-Policy',
      "default-src 'self'; img-src *",
      'Link',
      '</a>',
      'link',
      '</b>',
      'X-Token',
      'there',
    ]);
  });
});

/** Pieces of ini texts, to reach states that random characters do not reach. */
const piece = fc.oneof(
  fc.constantFrom('[', ']', '=', '\n', '\r\n', ';', '#', '"', "'", '\\', '${', '}', '[]', ' ', '.'),
  fc.constantFrom('server', 'disk.a', '.headers', 'tls.', 'listen', 'root', 'retry', '__proto__'),
  fc.constantFrom('\n[server]\n', '\n[disk.a]\n', '\n[disk.a.headers]\n', '\npath = /', ':80', '%'),
  fc.string({ unit: anyCharacter }),
);

test('no text makes the parser throw, and problems are in the order of their lines', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const text = pieces.join('');
      const lines = parseIni(text, { env }).problems.map(({ line }) => line);
      const count = text.split(/\r\n|\n|\r/).length;
      assert.ok(lines.every((line, at) => line >= (lines[at - 1] ?? 1) && line <= count));
    }),
    { numRuns: 2_000 },
  );
});
