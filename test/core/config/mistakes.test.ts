import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseIni } from '../../ini.ts';

/** Problems of an ini text as `line: message`. */
function mistakes(text: string): readonly string[] {
  const { problems } = parseIni(text, { env: { HERE: 'set', LINES: 'a\nb' } });
  return problems.map(({ line, message }) => `${line}: ${message}`);
}

const formTable: readonly (readonly [text: string, ...problems: string[]])[] = [
  ['[server]\nwhat is this', '2: `what is this` is not of the form `key = value`'],
  ['[log]\nexplain', '2: `explain` is not of the form `key = value`'],
  ['[log]\nexplain ; = yes', '2: `explain ; = yes` is not of the form `key = value`'],
  ['[log]\n= yes', '2: `= yes` is not of the form `key = value`'],
  ['[log]\n"" = yes', '2: `"" = yes` is not of the form `key = value`'],
  ['[server', '1: `[server` is not a section: write `[name]`'],
  ['[server] data = x', '1: `[server] data = x` is not a section: write `[name]`'],
  ['[]\nlevel = x', '1: a section without a name: write `[name]`'],
  ['[ ]', '1: a section without a name: write `[name]`'],
  ['level = info', '1: `level` comes before the first [section]; it belongs to [log]'],
  ['origin = *', '1: `origin` comes before the first [section]'],
  [
    'timeout = 3s',
    '1: `timeout` comes before the first [section]; it belongs to [proxy.<name>] or [fetch] or [webhook]',
  ],
  ['[log]\n\n[node]\n[log]', '4: line 1 already begins `[log]`: put both together'],
  ['[tls.A.b]\n[tls.a.B]', '2: line 1 already begins `[tls.a.B]`: put both together'],
  [
    '[log]\nlevel = info\n[log]\nlevel = warn',
    '3: line 1 already begins `[log]`: put both together',
    '4: line 2 already sets `level`',
  ],
  [
    '[log]\nlevel = nope\nlevel = info',
    '2: `level` cannot be `nope`: write `trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`',
    '3: line 2 already sets `level`',
  ],
  [
    '[server]\nlisten = :1\nlisten = :2',
    '3: line 2 already sets `listen`; write `listen[]` for several values',
  ],
  ['[server]\ndata[] = x', '2: `data` takes one value: write it without []'],
  [
    '[log]\r\nlevel = info\r\nformt = json\r\n',
    '3: unknown key `formt` in [log]; did you mean `format`?',
  ],
  ['[log]\rformt = json', '2: unknown key `formt` in [log]; did you mean `format`?'],
];

const nameTable: readonly (readonly [text: string, ...problems: string[]])[] = [
  ['[disk.site]\nrooot = x', '2: unknown key `rooot` in [disk.site]; did you mean `root`?'],
  ['[disk.site]\nROOT = x', '2: unknown key `ROOT` in [disk.site]; did you mean `root`?'],
  [
    '[server]\ntrust-proxy = ::1',
    '2: unknown key `trust-proxy` in [server]; did you mean `trust_proxy`?',
  ],
  ['[server]\nlitsen = :1', '2: unknown key `litsen` in [server]; did you mean `listen`?'],
  ['[server]\nanonymous = read', '2: unknown key `anonymous` in [server]; it belongs to [auth]'],
  ['[server]\nbanana = 1', '2: unknown key `banana` in [server]'],
  [
    '[tls.a.b]\nhttp_redirect = no',
    '2: unknown key `http_redirect` in [tls.a.b]; it belongs to [tls]',
  ],
  ['[server]\n__proto__ = 1', '2: unknown key `__proto__` in [server]'],
  ['[server]\nconstructor = 1', '2: unknown key `constructor` in [server]'],
  ['[server]\n\u001b[31m = 1', '2: unknown key `\\u{1b}[31m` in [server]'],
  ['[servr]\nlisten = 1', '1: unknown section `[servr]`; did you mean `[server]`?'],
  ['[dsk.site]', '1: unknown section `[dsk.site]`; did you mean `[disk.site]`?'],
  ['[server.main]', '1: unknown section `[server.main]`; did you mean `[server]`?'],
  ['[webhooks]', '1: unknown section `[webhooks]`; did you mean `[webhook]`?'],
  [
    '[server]\nport = 80',
    '2: unknown key `port` in [server]; write `listen` of [server], such as `listen = :8080`',
  ],
  [
    '[proxy.app]\nproxy-pass = http://127.0.0.1:3000',
    '2: unknown key `proxy-pass` in [proxy.app]; write `source` of a [proxy.<name>]',
  ],
  ['[site]\nroot = x', '1: unknown section `[site]`; write `[disk.<name>]` with a `root`'],
  ['[disk site]', '1: unknown section `[disk site]`; did you mean `[disk.site]`?'],
  ['[banana]', '1: unknown section `[banana]`'],
  ['[__proto__]', '1: unknown section `[__proto__]`'],
  ['[disk]', '1: [disk] needs a name, such as [disk.main]'],
  ['[disk.]', '1: [disk] needs a name, such as [disk.main]'],
  [
    '[disk.<name>]',
    '1: unknown section `[disk.<name>]`: a name has 1 to 64 letters, digits, - or _',
  ],
  ['[disk.a b]', '1: unknown section `[disk.a b]`: a name has 1 to 64 letters, digits, - or _'],
  ['[disk.a.header]', '1: unknown section `[disk.a.header]`; did you mean `[disk.a.headers]`?'],
  [
    '[disk.a.b.headers]',
    '1: unknown section `[disk.a.b.headers]`: a name has 1 to 64 letters, digits, - or _',
  ],
  [
    '[tls.127.0.0.1]',
    '1: unknown section `[tls.127.0.0.1]`: write a hostname such as [tls.www.example.com] or [tls.*.example.com]',
  ],
  [
    `[table.${'t'.repeat(129)}]`,
    `1: unknown section \`[table.${'t'.repeat(73)}…\`: a table has 1 to 63 lower-case letters, digits, - or _, and begins with a letter`,
  ],
];

/** Section, key and an invalid value, with the end of the message. */
const valueTable: readonly (readonly [section: string, key: string, value: string, why: string])[] =
  [
    ['log', 'access', 'maybe', 'write `yes` or `no`'],
    ['log', 'access', 'constructor', 'write `yes` or `no`'],
    ['log', 'format', 'xml', 'write `pretty`, `json` or `combined`'],
    ['disk.a', 'dotfiles', 'hide', 'write `deny` or `allow`'],
    ['disk.a', 'symlinks', 'yes', 'write `within`, `deny` or `follow`'],
    ['node', 'role', 'counters', 'write `all`, `central`, `replica` or `counter`'],
    ...['http://10.0.0.5', 'nats://me@10.0.0.5', 'nats://', 'tls://a:65536', '*:4222'].map(
      (value): readonly [string, string, string, string] => [
        ...(['cluster', 'servers', value] as const),
        'write the address of a NATS server, such as `nats://10.0.0.5:4222`',
      ],
    ),
    ['cluster', 'name', 'a.b', 'a name has 1 to 64 letters, digits, - or _'],
    ['server', 'workers', '0', 'write a whole number from 1 to 256, or `auto`'],
    ['server', 'workers', '-1', 'write a whole number from 1 to 256, or `auto`'],
    ['server', 'workers', '1e2', 'write a whole number from 1 to 256, or `auto`'],
    ['webhook', 'concurrency', '1.5', 'write a whole number from 1 to 10000'],
    [
      'webhook',
      'local_address',
      'eth0',
      'write an IP address, such as `192.0.2.7` or `2001:db8::7`',
    ],
    ['fetch', 'timeout', '30', 'write a time such as `500ms`, `3s`, `5m` or `30d`'],
    ['fetch', 'timeout', '30 sec', 'write a time such as `500ms`, `3s`, `5m` or `30d`'],
    ['fetch', 'timeout', '0s', 'write a time from 1ms to 1d'],
    ['fetch', 'connect_timeout', '11m', 'write a time from 1ms to 10m'],
    ['fetch', 'cache', '1 zillion', 'write a size such as `64KiB`, `256MiB` or `1GiB`'],
    ['fetch', 'cache', '64k', 'write a size such as `64KiB`, `256MiB` or `1GiB`'],
    ['fetch', 'max_body', '999999999999999TiB', 'write a size such as `64KiB`, `256MiB` or `1GiB`'],
    ['fetch', 'max_body', '-1', 'write a size such as `64KiB`, `256MiB` or `1GiB`'],
    ['auth', 'jwt_cookie', 'a b', 'write the name of a cookie, such as `jwt`'],
    [
      'auth',
      'jwt_roles',
      'a..b',
      'write the name of a claim, such as `roles` or `realm_access.roles`',
    ],
    ['auth', 'user_header', 'X User', 'write the name of a header field, such as `X-User`'],
    ['auth', 'jwt_jwks', 'ftp://a/b', 'write an http or https URL, or the name of a file'],
    ['tls', 'acme_directory', 'http://ca.example/dir', 'write an https URL'],
    ['tls', 'acme_directory', 'https://me@ca.example/dir', 'write an https URL'],
    ['tls', 'acme_directory', 'letsencrypt', 'write an https URL'],
    ['tls', 'acme_email', 'admin', 'write an address such as `admin@example.com`'],
    [
      'tls',
      'acme_email',
      'a@b.example, c@d.example',
      'write an address such as `admin@example.com`',
    ],
    ['tls.a.example', 'acme', 'letsencrypt', 'write `yes` or `no`'],
    ['tls', 'hsts', 'yes', 'write a time such as `500ms`, `3s`, `5m` or `30d`'],
    ['tls', 'hsts', '30d all', 'write a time such as `365d`, or `365d subdomains`'],
    ['tls', 'hsts', '365d preload', '`preload` needs `subdomains` and 365d or more'],
    ['tls', 'hsts', '90d subdomains preload', '`preload` needs `subdomains` and 365d or more'],
    ['engine.a', 'page', 'page.html', 'the path does not start with /'],
    [
      'engine.a',
      'script',
      '//evil/x.js',
      'write a path that starts with /, or an http or https URL',
    ],
    [
      'engine.a',
      'script',
      'javascript:alert(1)',
      'write a path that starts with /, or an http or https URL',
    ],
    [
      'engine.a',
      'reference',
      'https://u:p@host/',
      'write a path that starts with /, or an http or https URL',
    ],
    ['disk.a', 'cache_control', 'no-cache\u00e9', 'a header field may contain ASCII only'],
    ['disk.a', 'fallback', '../secret', 'write the path of a file below `root`'],
    ['disk.a', 'fallback', 'a/../../b', 'write the path of a file below `root`'],
    ['disk.a', 'fallback', '/', 'write the path of a file below `root`'],
    [
      'server',
      'public_url',
      'https://a.example/',
      'write an origin such as `https://www.example.com`, without a path',
    ],
    [
      'server',
      'public_url',
      '*',
      'write an origin such as `https://www.example.com`, without a path',
    ],
  ];

const wrongOrigins = [
  'www.example.com',
  'ftp://a.example',
  'https://',
  'https://a.example/x',
  'https://a.example?x',
  'https://u@a.example',
  'https://u:p@a.example',
  'https://a.example:0',
  'https://a.example:65536',
  'https://a.example:',
  'https://a b.example',
  'https://a%2eexample',
  'https://a..example',
  'https://.a.example',
  'https://127.1',
  'https://0x7f.1',
  'https://1.2.3.256',
  'https://[::g]',
  'https://[::1',
  `https://${'a'.repeat(600)}`,
];

const wrongListens = [
  'x',
  'localhost',
  ':',
  ':-1',
  ':65536',
  ':123456',
  '::1:80',
  '[::1]',
  '[::1:80',
  '[127.0.0.1]:80',
  '127.1:80',
  '1.2.3.256:80',
  'a b:80',
  'ftp://a:80',
  'https://',
  'https://a:443/',
  'https://a:b',
  'https://::1',
  'unix',
  '80 81',
  'a/b:80',
];

const wrongPaths: readonly (readonly [path: string, why: string])[] = [
  ['shop', 'the path does not start with /'],
  ['http://a/', 'the path does not start with /'],
  ['//a', 'the path has an empty segment'],
  ['/a//b', 'the path has an empty segment'],
  ['/a/../b', 'the path has a . or .. segment'],
  ['/a/%2e%2E', 'the path has a . or .. segment'],
  ['/./', 'the path has a . or .. segment'],
  ['"/..;x/"', 'the path has a . or .. segment'],
  ['/a%2Fb', 'the path has an encoded / or \\, or a byte that is not UTF-8'],
  ['/a%5cb', 'the path has an encoded / or \\, or a byte that is not UTF-8'],
  ['"/a\\\\b"', 'the path has a backslash'],
  ['/a%00', 'the path has a control character'],
  ['/a%0a', 'the path has a control character'],
  ['/a%', 'the path has a % without two hexadecimal digits after it: write %25'],
  ['/a%zz', 'the path has a % without two hexadecimal digits after it: write %25'],
  ['/a%ff', 'the path has an encoded / or \\, or a byte that is not UTF-8'],
  ['/a?b', 'the path has a query or a fragment'],
  ['/a/*', 'remove the *: a mount answers everything below its path'],
  [`/${'a'.repeat(4096)}`, 'the path has more than 4096 bytes'],
];

/** The message about the value in the second line, without the value itself. */
function whyRefused(section: string, key: string, value: string): string {
  const [problem = 'nothing', ...more] = mistakes(`[${section}]\n${key} = ${value}`);
  assert.deepEqual(more, []);
  assert.ok(problem.startsWith(`2: \`${key}\` cannot be \``), problem);
  return problem.slice(problem.indexOf('`: ') + 3);
}

suite('a mistake in the ini file is reported with its line', () => {
  for (const [text, ...problems] of [...formTable, ...nameTable]) {
    test(JSON.stringify(text.slice(0, 60)), () => {
      assert.deepEqual(mistakes(text), problems);
    });
  }

  for (const [section, key, value, why] of valueTable) {
    test(`[${section}] ${key} = ${value}`, () => {
      assert.equal(whyRefused(section, key, value), why);
    });
  }

  test('an origin has a scheme, a host and a port that no client reads in another way', () => {
    for (const origin of wrongOrigins) {
      const why = whyRefused('disk.a', 'origin', origin);
      assert.equal(
        why,
        'write an origin such as `https://www.example.com` or `https://*.example.com`, ' +
          'without a path, or `*`',
      );
    }
  });

  test('an address to listen on has a port and an unambiguous host', () => {
    for (const listen of wrongListens) {
      const why = whyRefused('server', 'listen', listen);
      const shapes = '`127.0.0.1:8080`, `[::1]:8080`, `:8080`, `https://:443` or `unix:/path`';
      assert.equal(why, `write ${shapes}`, listen);
    }
    assert.equal(whyRefused('server', 'listen', 'unix:'), 'write a path after unix:');
  });

  for (const [path, why] of wrongPaths) {
    test(`a mount cannot have the path ${path.slice(0, 40)}`, () => {
      assert.equal(whyRefused('disk.a', 'path', path), why);
    });
  }
});

test('a message names the invalid item of a list, and the line of a repeated key', () => {
  assert.deepEqual(
    mistakes('[server]\ntrust_proxy = 10.0.0.0/8, 10.0.0.0/33\ntrust_proxy[] = 127.1'),
    [
      '2: `trust_proxy` cannot be `10.0.0.0/33`: write a network such as `10.0.0.0/8` or `fd00::/8`, or an address',
      '3: `trust_proxy` cannot be `127.1`: write a network such as `10.0.0.0/8` or `fd00::/8`, or an address',
    ],
  );
  assert.deepEqual(mistakes('[auth]\nanonymous = render reed'), [
    '2: `anonymous` cannot be `reed`: did you mean `read`?',
  ]);
  assert.deepEqual(mistakes('[auth]\nanonymous = everything'), [
    '2: `anonymous` cannot be `everything`: write one or more of render, read, design, draft, publish, webhook, event, verify, record.read, record.write, follow, admin',
  ]);
  assert.deepEqual(mistakes('[disk.a]\nindex = index.html ../x'), [
    '2: `index` cannot be `../x`: write the name of a file, without a folder',
  ]);
  assert.deepEqual(mistakes('[webhook]\nretry = 5s, soon'), [
    '2: `retry` cannot be `soon`: write a time such as `500ms`, `3s`, `5m` or `30d`',
  ]);
});

test('a key with a default cannot be empty', () => {
  assert.deepEqual(mistakes('[server]\ndata =\nlisten = ""\n[disk.a]\nroot = ; none'), [
    '2: `data` is empty: give it a value, or remove the line for the default, `./data`',
    '3: `listen` is empty: give it a value, or remove the line for the default, `127.0.0.1:8080`',
    '5: `root` is empty: give it a value, or remove the line for the default, `../site`',
  ]);
});

test('a message names a variable that is not set', () => {
  assert.deepEqual(
    mistakes(
      '[server]\ndata = ${HERE}/${NOT_HERE}\nimport = ${HERE\nbase = ${}\npublic_url = ${LINES}',
    ),
    [
      '2: the value of `data`: `${NOT_HERE}` is not set: add it to [variables] or to the environment',
      '3: the value of `import`: `${HERE` is not set: add it to [variables] or to the environment',
      '4: the value of `base`: `${}` is not set: add it to [variables] or to the environment',
      '5: the value of `public_url`: it contains a control character',
    ],
  );
  assert.deepEqual(mistakes('[server]\ndata = ${toString}'), [
    '2: the value of `data`: `${toString}` is not set: add it to [variables] or to the environment',
  ]);
});

test('an escape cannot insert a control character or half a character', () => {
  assert.deepEqual(mistakes('[node]\nname = "a\\u0000b"'), [
    '2: the value of `name`: it contains a control character',
  ]);
  assert.deepEqual(mistakes('[node]\nname = "a\\ud800"'), [
    '2: the value of `name`: it contains half a character (a lone surrogate)',
  ]);
});

test('a value that a ; or # without a space before it would cut is refused', () => {
  const text = '[engine.a]\nreference = /tour/#tides\n[node]\nname = a;b\n[log]\nlevel = info ;c';
  assert.deepEqual(mistakes(text), [
    '2: the value of `reference` ends at a ; or #, which begins a comment: put the value in quotes',
    '4: the value of `name` ends at a ; or #, which begins a comment: put the value in quotes',
  ]);
  // U+2028 ends a line for JavaScript's regular expressions, but not in the ini file.
  assert.deepEqual(mistakes('[node]\nname = "\u2028#b"'), []);
});

test('a mount cannot add header fields that the server sets, or a field with a cut value', () => {
  const lines = [
    '[disk.a.headers]',
    'Content-Length = 5',
    'transfer-encoding = chunked',
    'Connection = close',
    'Date = today',
    'Content-Range = x',
    'ETag = x',
    'Cache-Control = no-store',
    'X Y = z',
    'X-A = 1',
    'x-a = 2',
    "Content-Security-Policy = default-src 'self'; img-src *",
    'X-B = "a";q=1',
    'X-C = \u00e9',
    'X-D = ${NOPE}',
  ];
  assert.deepEqual(mistakes(lines.join('\n')), [
    '2: `Content-Length`: the server sets that field itself',
    '3: `transfer-encoding`: the server sets that field itself',
    '4: `Connection`: the server sets that field itself',
    '5: `Date`: the server sets that field itself',
    '6: `Content-Range`: the server sets that field itself',
    '7: `ETag`: the server sets that field itself',
    '8: `Cache-Control`: use the key `cache_control` of the mount',
    '9: `X Y`: it is not a valid name of a header field',
    '11: line 10 already sets `x-a`; write `x-a[]` for several values',
    '12: the value of `Content-Security-Policy` ends at a ; or #, which begins a comment: put the value in quotes',
    '13: the value of `X-B` ends at a ; or #, which begins a comment: put the value in quotes',
    '14: `X-C` cannot be `\u00e9`: a header field may contain ASCII only',
    '15: the value of `X-D`: `${NOPE}` is not set: add it to [variables] or to the environment',
  ]);
  const many = Array.from({ length: 33 }, (_, at) => `X-${at} = 1`).join('\n');
  assert.deepEqual(mistakes(`[disk.a.headers]\n${many}`), [
    '1: [disk.a.headers] has more than 32 fields: remove some',
  ]);
});

test('[variables] give values to `${NAME}`, and the environment takes precedence', () => {
  const text = (more = '') =>
    `[variables]\nPORT = 9080\nHOST = \${HERE}\n${more}[server]\nlisten = \${HOST}:\${PORT}\n`;
  const listening = (env: Record<string, string>) => {
    const ini = parseIni(text(), { env });
    assert.deepEqual(ini.problems, []);
    const [where] = ini.server.values.listen;
    return where?.kind === 'tcp' && `${where.host} ${where.port}`;
  };
  assert.equal(listening({ HERE: '127.0.0.1' }), '127.0.0.1 9080');
  assert.equal(listening({ HERE: '127.0.0.1', PORT: '9090' }), '127.0.0.1 9090');
  const { problems } = parseIni(text('PORT = 1\na-b = 2\n'), { env: { HERE: 'localhost' } });
  assert.deepEqual(
    problems.map(({ line, message }) => `${line}: ${message}`),
    ['4: line 2 already sets `PORT`', '5: `a-b` is not a valid name: use letters, digits and _'],
  );
  const [{ message } = { message: '' }] = parseIni('[variable]\n', { env: {} }).problems;
  assert.match(message, /did you mean `\[variables\]`/);
});
