import assert from 'node:assert/strict';
import { chmod, symlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { problemText } from '../../../src/core/config/problem.ts';
import { cidrsContain, isCidr } from '../../../src/core/values/network/cidr.ts';
import { createAuthority } from '../../certificates.ts';
import { mmdb } from '../../modules/visitors/mmdb.ts';
import { makeFolder, readIni, requireIni } from './folder.ts';

const authority = await createAuthority();
const [pair, other, short] = await Promise.all([
  authority.issue(['www.example.com']),
  authority.issue(['www.example.com']),
  authority.issue(['www.example.com'], { rsaBits: 1_024 }),
]);
const https = '[server]\nlisten = https://:443\n';

/** Files that the ini texts below name; the ini file itself is conf/server.ini. */
const files = {
  'site/index.html': 'hello',
  'site/app/shell.html': 'shell',
  'conf/cert.pem': pair.cert,
  'conf/key.pem': pair.key,
  'conf/both.pem': `${pair.key}\n${pair.cert}`,
  'conf/other.key': other.key,
  'conf/short.pem': short.cert,
  'conf/short.key': short.key,
  'conf/sealed.key': '-----BEGIN ENCRYPTED PRIVATE KEY-----\n-----END ENCRYPTED PRIVATE KEY-----',
  'conf/broken.pem': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----',
  'conf/broken.key': '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----',
  'conf/rules.ndjson': '',
  'conf/geo.mmdb': mmdb({}),
  'conf/jwks.json': '{"keys":[]}',
  'conf/tables/products.json': '{"type": "object", "properties": {"name": {"type": "string"}}}',
  'conf/tables/list.json': '[]',
  'conf/tables/invalid.json': '{"properties": {"name": {"type": "strng"}}}',
  'conf/tables/circle.json': '{"properties": {"parts": {"type": "array", "items": {"$ref": "#"}}}}',
  'conf/tables/reserved.json': '{"properties": {"seq": {}}}',
  'conf/tables/broken.json': '{"type": ',
  'conf/tables/deep.json': '{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000),
  'conf/tables/latin.json': Buffer.from('{"a":"\xe9"}', 'latin1'),
};

/** The lines of a table whose schema has one field, `name`. */
const products = '[table.products]\nschema = tables/products.json\n';
const inProducts = '[table.products]';

const tableMistakes: readonly (readonly [string, ...string[]])[] = [
  [
    `${products}key = nam`,
    `3: ${inProducts}: key names nam, which the schema does not have. Did you mean name?`,
  ],
  [
    `${products}index = name price`,
    `3: ${inProducts}: index names price, which the schema does not have.`,
  ],
  [
    `${products}read = reed`,
    `3: ${inProducts}: read names reed: write scopes, anonymous or user. Did you mean read?`,
  ],
  [
    `${products}edit = user`,
    `3: ${inProducts}: edit names user: owner has to name the field with the user of a row.`,
  ],
  [`${products}honeypot = name`, `3: ${inProducts}: honeypot name has to be no field of the rows.`],
  [
    `${products}events = stock: name`,
    `3: ${inProducts}: events, stock: an event type is dotted, in lower case, such as stock.level_changed.`,
  ],
  [
    `${products}host = ftp://x.example/`,
    `3: ${inProducts}: host has to be a URL without a user: https://example.com/svc1/ws.`,
  ],
  [
    '[table.event]\nschema = tables/products.json',
    "1: unknown section `[table.event]`: event is a family of Waymark's own records: choose another name",
  ],
  [
    '[table.products]\nschema = tables/invalid.json',
    '2: [table.products] in `tables/invalid.json`: schema at /properties/name/type: It has to be one of array, boolean, integer, null, number, object, string.',
  ],
  [
    '[table.products]\nschema = tables/circle.json',
    '2: [table.products] in `tables/circle.json`: schema at /properties/parts/items/$ref: It leads back to a schema around it, but rows cannot nest in a circle.',
  ],
  [
    '[table.products]\nschema = tables/reserved.json',
    "2: [table.products] in `tables/reserved.json`: schema has a property seq: these names are Waymark's own: id, table, seq, if_seq, as_of, vk, _unknowns_, _titles_, unknowns, problems.",
  ],
];

/** Problems of conf/server.ini with this text, each as `line: message`. */
async function mistakes(context: TestContext, text: string): Promise<readonly string[]> {
  const folder = await makeFolder(context, { ...files, 'conf/server.ini': text });
  const result = await readIni(join(folder, 'conf/server.ini'));
  return result.ok ? [] : result.problems.map(({ line, message }) => `${line}: ${message}`);
}

suite('contradicting keys and missing files are reported with their line', () => {
  const table: readonly (readonly [text: string, ...problems: string[]])[] = [
    ['[disk.site]\nroot = nowhere', '2: `root` = `nowhere` does not exist'],
    ['[disk.site]\nroot = cert.pem', '2: `root` = `cert.pem` is not a folder'],
    [
      '[disk.site]\npath = /a\n[disk.b]\nroot = tables\n[disk.c]\nroot=x',
      '5: [disk.c] has the same origin and path as [disk.b], in line 3',
      '6: `root` = `x` does not exist',
    ],
    ['[disk.site]\nrooot = nowhere', '2: unknown key `rooot` in [disk.site]; did you mean `root`?'],
    [
      '[disk.site]\nlisting = x\nfallback = no.html',
      '2: `listing` cannot be `x`: write `yes` or `no`',
      '3: `fallback` = `no.html` does not exist',
    ],
    ['[disk.site]\nfallback = app', '2: `fallback` = `app` is not a file'],
    ['[disk.site]\nerrors = gone', '2: `errors` = `gone` does not exist'],
    ['[disk.site]\nerrors = app/shell.html', '2: `errors` = `app/shell.html` is not a folder'],
    [
      '[disk.a]\npath = /a\n[disk.b]\npath = /a/',
      '4: [disk.b] has the same origin and path as [disk.a], in line 1',
    ],
    [
      '[disk.a]\n[disk.b]\norigin = *',
      '3: [disk.b] has the same origin and path as [disk.a], in line 1',
    ],
    ['[disk.a]\n[disk.b]', '2: [disk.b] has the same origin and path as [disk.a], in line 1'],
    [
      '[disk.site.headers]\nX-A = 1',
      '1: [disk.site.headers] has no effect: there is no [disk.site]',
    ],
    ['[server]\nimport = none.ndjson', '2: `import` = `none.ndjson` does not exist'],
    ['[server]\nimport = tables', '2: `import` = `tables` is not a file'],
    ['[server]\nimport = cert.pem/x', '2: `import` = `cert.pem/x` does not exist'],
    ['[server]\nlisten[] = :80\nlisten[] = *:80', '3: line 2 already has this address'],
    ['[tls]\ncert = cert.pem', '2: `cert` needs `key`, too: add it to [tls]'],
    ['[tls.a.example]\nkey = key.pem', '2: `key` needs `cert`, too: add it to [tls.a.example]'],
    ['[tls.a.example]', '1: [tls.a.example] needs `cert` and `key`, or `acme = yes`'],
    [
      `${https}[tls.a.example]\nacme = yes\ncert = cert.pem`,
      '4: with `acme = yes` the server orders the certificate itself: remove `cert`',
    ],
    [
      `${https}[tls.*.example.com]\nacme = yes`,
      '4: `acme` cannot get the wildcard certificate of [tls.*.example.com]: that needs a DNS ' +
        'challenge. Set `acme_dns_hook`, or `acme_dns_server` and `acme_dns_key`, in [tls]; or ' +
        'give each name a section of its own',
    ],
    [
      '[tls.a.example]\nacme = yes',
      '2: no `listen` of [server] uses TLS: add one, such as `listen[] = https://:443`',
    ],
    [
      `${https}[tls]\nacme_eab_kid = 7\n[tls.a.example]\nacme = yes`,
      '4: `acme_eab_kid` needs `acme_eab_key`, too',
    ],
    [
      `${https}[tls]\nacme_eab_key = none.key\n[tls.a.example]\nacme = yes`,
      '4: `acme_eab_key` needs `acme_eab_kid`, too',
      '4: `acme_eab_key` = `none.key` does not exist',
    ],
    [
      `${https}[tls]\nacme_eab_kid = 7\nacme_eab_key = key.pem\n[tls.a.example]\nacme = yes`,
      '5: `acme_eab_key` = `key.pem` does not contain a key in base64url',
    ],
    [
      `${https}[tls]\nacme_ca = none.pem\n[tls.a.example]\nacme = yes`,
      '4: `acme_ca` = `none.pem` does not exist',
    ],
    [
      `${https}[tls]\nacme_ca = key.pem\n[tls.a.example]\nacme = yes`,
      '4: `acme_ca` = `key.pem` does not contain a PEM certificate',
    ],
    [`${https}[tls]\ncert = cert.pem\nkey = none.pem`, '5: `key` = `none.pem` does not exist'],
    [
      `${https}[tls]\ncert = key.pem\nkey = key.pem`,
      '4: `cert` = `key.pem` does not contain a PEM certificate',
    ],
    [
      `${https}[tls]\ncert = broken.pem\nkey = key.pem`,
      '4: `cert` = `broken.pem` contains a malformed certificate',
    ],
    [
      `${https}[tls]\ncert = cert.pem\nkey = cert.pem`,
      '5: `key` = `cert.pem` does not contain a PEM private key',
    ],
    [
      `${https}[tls]\ncert = cert.pem\nkey = broken.key`,
      '5: `key` = `broken.key` contains a malformed private key',
    ],
    [
      `${https}[tls]\ncert = cert.pem\nkey = sealed.key`,
      '5: `key` = `sealed.key` is encrypted: save it without a passphrase',
    ],
    [
      `${https}[tls.www.example.com]\ncert = cert.pem\nkey = other.key`,
      '5: `key` = `other.key` is not the key of the first certificate in `cert`',
    ],
    [
      `${https}[tls]\ncert = short.pem\nkey = short.key`,
      '5: `key` = `short.key` has 1024 bits, fewer than the 2048 that clients require',
    ],
    [
      '[tls]\nacme_on_demand = http://a/ask',
      '2: no `listen` of [server] uses TLS: add one, such as `listen[] = https://:443`',
    ],
    [
      `${https}[tls]\ncert = cert.pem\nkey = key.pem\nacme_on_demand = https://u@a/`,
      '6: `acme_on_demand` cannot be `https://…@a/`: write an http or https URL, such as ' +
        '`http://127.0.0.1:3000/may-have-certificate`',
    ],
    [
      `${https}[tls]\nacme_on_demand = http://a/\nacme_on_demand_wait = 10s`,
      '5: `acme_on_demand_wait` cannot be `10s`: write a time from 0s to 9s',
    ],
    [
      `${https}[tls]\ncert = cert.pem\nkey = key.pem\nacme_on_demand_rate = 5`,
      '6: `acme_on_demand_rate` needs `acme_on_demand`, too: the URL that allows names',
    ],
    ['[telemetry]\nsample = .5', '2: `sample` needs `endpoint`, too: the URL of a collector'],
    [
      '[telemetry]\nendpoint = http://a\nsample = 2',
      '3: `sample` cannot be `2`: write a number from 0 to 1, such as `0.1`',
    ],
    [
      '[telemetry]\nendpoint = grpc://a',
      '2: `endpoint` cannot be `grpc://a`: write the URL of a collector, such as `http://127.0.0.1:4318`',
    ],
    [
      '[telemetry]\nendpoint = http://a\nheaders = a',
      '3: `headers` cannot be `a`: write fields as `name=value`, with commas between them',
    ],
    [https, '2: TLS needs a certificate: set `cert` and `key`, or `acme = yes` for a host'],
    [
      '[server]\nlisten[] = :8080\nlisten[] = https://:8080\n[tls]\ncert=both.pem\nkey=both.pem',
      '3: line 2 already has this address',
    ],
    [
      '[tls]\ncert = cert.pem\nkey = key.pem',
      '2: no `listen` of [server] uses TLS: add one, such as `listen[] = https://:443`',
    ],
    ['[table.products]', '1: `[table.products]` needs a `schema`, or a `host` that has it'],
    ['[table.products]\nschema = none.json', '2: `schema` = `none.json` does not exist'],
    [
      '[table.products]\nschema = tables/list.json',
      '2: `schema` = `tables/list.json` is not a JSON object',
    ],
    [
      '[table.products]\nschema = tables/deep.json',
      '2: `schema` = `tables/deep.json` nests deeper than 64 levels',
    ],
    [
      '[table.products]\nschema = tables/latin.json',
      '2: `schema` = `tables/latin.json` is not UTF-8 text',
    ],
    ...tableMistakes,
    ['[auth]\njwt_issuer = https://id.example/', '2: `jwt_issuer` needs `jwt_jwks`, too'],
    ['[log]\nfields = address, tsl', '2: `fields` cannot be `tsl`: did you mean `tls`?'],
    [
      '[log]\nline = {adress} {status}',
      '2: `line` cannot be `{adress} {status}`: it has `{adress}`: did you mean `address`?',
    ],
    [
      '[log]\nline = status',
      '2: `line` cannot be `status`: write a line with fields in braces, such as `{address} "{request}" {status}`',
    ],
    [
      '[log]\nline = {status}\nfields = ms',
      '3: `fields` has no effect with `line`: remove one of them',
    ],
    [
      '[log]\nrotate_age = 1d',
      '2: `rotate_age` needs `file`, too: standard output has no file to rotate',
    ],
    [
      '[log]\nfile = a.log\nrotate_size = 1KiB',
      '3: `rotate_size` cannot be `1KiB`: write a size of at least 4KiB',
    ],
    [
      '[log]\nsyslog = udp:host',
      '2: `syslog` cannot be `udp:host`: write `udp://127.0.0.1:514`, `tcp://log.example:601` or `unix:/run/log`',
    ],
    ['[log.a]\naccess = no', '1: [log.a] needs `path`, such as `path = /health`'],
    ['[log.a]\npath = /a', '1: [log.a] has no effect: add `access = no` or `sample = 100`'],
    ['[node]\nrole = replica', '2: `role = replica` needs `central`, too'],
    ['[node]\nkey_file = cert.pem', '2: `key_file` needs `central`, too'],
    [
      '[node]\ncentral = https://c.example',
      '2: `central` needs `role = replica` or `role = counter`',
    ],
    ['[node]\nrole = counter\ncentral = https://c.example', '3: `central` needs `key_file`, too'],
    [
      '[node]\nrole = counter\nkey_file = cert.pem\ncentral = https://c.example',
      '4: `central` needs `name`, too: that of the key',
    ],
    [
      '[node]\ncentral = wss://c.example',
      '2: `central` cannot be `wss://c.example`: write the URL of a server, such as `https://www.example.com`',
    ],
    ['[cluster]\nname = shop\nuser = u', '3: `user` needs `servers`, too'],
    [
      '[cluster]\nservers = a, b\nuser = u',
      '3: `user` needs `password_file`, too: add it to [cluster]',
    ],
    [
      '[cluster]\nservers = a\nsecrets_key_file = none.key',
      '3: `secrets_key_file` = `none.key` does not exist: copy it from another machine of the ' +
        'cluster, or make one with `openssl rand -base64 32 > cluster.key`',
    ],
    [
      '[cluster]\nservers = a\nsecrets_key_file = key.pem',
      '3: `secrets_key_file` = `key.pem` has no key in line 1: it must be 32 bytes in base64; ' +
        'make one with `openssl rand -base64 32 > cluster.key`',
    ],
    [
      '[server]\nlisten = https://:1\n[tls.a.example]\nacme = yes\n[cluster]\nservers = a',
      '4: the machines of a cluster share certificates with their private keys, so `acme` needs ' +
        '`secrets_key_file` in [cluster], whose key encrypts them: make one with `openssl rand ' +
        '-base64 32 > cluster.key`',
    ],
    [
      '[server]\nlisten = https://:1\n[tls]\nacme_on_demand = http://a/\n[cluster]\nservers = a',
      '4: the machines of a cluster share certificates with their private keys, so ' +
        '`acme_on_demand` needs `secrets_key_file` in [cluster], whose key encrypts them: make ' +
        'one with `openssl rand -base64 32 > cluster.key`',
    ],
    ['[cluster]\nservers = a, b\nkey = key.pem', '3: `key` needs `cert`, too: add it to [cluster]'],
    [
      '[cluster]\nservers = a\ncredentials = key.pem\nuser = u\npassword_file = key.pem',
      '4: set either `credentials` or `user`, not both',
    ],
    [
      '[cluster]\nservers = a\ncredentials = none.creds\nca = key.pem',
      '3: `credentials` = `none.creds` does not exist',
      '4: `ca` = `key.pem` does not contain a PEM certificate',
    ],
    [
      '[node]\nrole = counter\nname = a\nkey_file = key.pem\ncentral = https://c.example\n[cluster]\nservers = a',
      '7: a node of a cluster has the log itself: remove `central` of [node]',
    ],
    ['[auth]\njwt_audience = lamps', '2: `jwt_audience` needs `jwt_jwks`, too'],
    ['[auth]\njwt_jwks = none.json', '2: `jwt_jwks` = `none.json` does not exist'],
    [
      '[auth]\njwt_jwks = tables/products.json',
      '2: `jwt_jwks` = `tables/products.json` is not a JWK Set: it has no array `keys`',
    ],
    ['[geo]\ndatabase = rules.ndjson', '2: `database` = `rules.ndjson` is not a MaxMind database'],
    ['[geo]\ndatabase = none.mmdb', '2: `database` = `none.mmdb` does not exist'],
    [
      '[server]\ndata = ../site/data\n[disk.site]\nroot = ../site',
      '4: `root` = `../site` contains the data folder: serve a folder without it',
    ],
    [
      `${https}[tls]\ncert = cert.pem\nkey = key.pem\n[disk.site]\nroot = .`,
      '7: `root` = `.` contains the data folder: serve a folder without it',
    ],
    [
      '[server]\ndata = ../data\n[cluster]\nservers = a\ncredentials = key.pem\n[disk.site]\nroot = .',
      '7: `root` = `.` contains the credentials of the cluster: serve a folder without it',
    ],
    [
      `${https}data = ../data\n[tls]\ncert = cert.pem\nkey = key.pem\n[disk.site]\nroot = .`,
      '8: `root` = `.` contains a private key: serve a folder without it',
    ],
  ];
  for (const [text, ...problems] of table) {
    test(JSON.stringify(text), async (context) => {
      assert.deepEqual(await mistakes(context, text), problems);
    });
  }

  test('a root that is a link to the folder above the data', async (context) => {
    const folder = await makeFolder(context, {
      'conf/server.ini': '[server]\ndata = ../all/data\n[disk.site]\nroot = link',
      'all/': '',
    });
    await symlink('../all', join(folder, 'conf/link'));
    const result = await readIni(join(folder, 'conf/server.ini'));
    assert.ok(!result.ok);
    assert.deepEqual(
      result.problems.map(({ message }) => message),
      ['`root` = `link` contains the data folder: serve a folder without it'],
    );
  });

  test('a schema that is not JSON', async (context) => {
    const [problem = '', ...more] = await mistakes(
      context,
      '[table.products]\nschema = tables/broken.json',
    );
    assert.match(problem, /^2: `schema` = `tables\/broken\.json` is not JSON: /);
    assert.deepEqual(more, []);
  });

  test('all problems are reported at once, in the order of the lines', async (context) => {
    const problems = await mistakes(
      context,
      '[disk.site]\nroot = none\n[banana]\n[log]\nlevel = x\n[geo]\ndatabase = none\nfoo = 1',
    );
    assert.deepEqual(
      problems.map((problem) => problem.split(':')[0]),
      ['2', '3', '5', '7', '8'],
    );
  });
});

suite('a fallback must be a file that the mount may serve', () => {
  const inside = 'is a symbolic link, which `symlinks = deny` does not allow';
  const outside = 'is a symbolic link to a file outside `root`';
  for (const [symlinks, fallback, problem] of [
    ['within', 'inside.html', undefined],
    ['within', 'outside.html', outside],
    ['within', 'out/cert.pem', outside],
    ['deny', 'inside.html', inside],
    ['deny', 'outside.html', inside],
    ['deny', 'app/shell.html', undefined],
    ['follow', 'outside.html', undefined],
  ] as const) {
    test(`symlinks = ${symlinks}, fallback = ${fallback}`, async (context) => {
      const text = `[disk.a]\nsymlinks = ${symlinks}\nroot = ../linked\nfallback = ${fallback}`;
      const folder = await makeFolder(context, { ...files, 'conf/server.ini': text });
      await symlink('site', join(folder, 'linked'));
      await symlink('app/shell.html', join(folder, 'site/inside.html'));
      await symlink('../conf/rules.ndjson', join(folder, 'site/outside.html'));
      await symlink('../conf', join(folder, 'site/out'));
      const result = await readIni(join(folder, 'conf/server.ini'));
      const messages = result.ok ? [] : result.problems.map(({ message }) => message);
      assert.deepEqual(
        messages,
        problem === undefined ? [] : [`\`fallback\` = \`${fallback}\` ${problem}`],
      );
    });
  }
});

suite('an ini file', () => {
  test('that is missing, too large or not UTF-8 is reported by the name that was given', async (context) => {
    const folder = await makeFolder(context, {
      'large.ini': ';'.repeat(1024 * 1024 + 1),
      'latin.ini': Buffer.from('; fine\n[node]\nname = caf\xe9\n', 'latin1'),
    });
    const told = async (name: string) => {
      const file = relative(process.cwd(), join(folder, name));
      const result = await readIni(file);
      assert.ok(!result.ok);
      return result.problems.map((problem) => problemText(problem).replace(file, 'FILE'));
    };
    assert.deepEqual(await told('none.ini'), ['FILE: the ini file does not exist']);
    assert.deepEqual(await told('large.ini'), ['FILE: the ini file is larger than 1048576 bytes']);
    assert.deepEqual(await told('latin.ini'), ['FILE:3: the ini file is not UTF-8 text']);
  });

  test('with an impossible name is reported', async () => {
    const result = await readIni('a\0b.ini');
    assert.ok(!result.ok);
    assert.equal(result.problems[0]?.message, 'the ini file is not a file name');
  });

  test(
    'that this user may not read is reported',
    { skip: process.getuid?.() === 0 && 'root may read everything' },
    async (context) => {
      const folder = await makeFolder(context, { 'server.ini': '', 'site/a': '' });
      await chmod(join(folder, 'server.ini'), 0);
      const result = await readIni(join(folder, 'server.ini'));
      assert.ok(!result.ok);
      assert.equal(result.problems[0]?.message, 'the ini file cannot be read by this user');
    },
  );

  test('of exactly 1 MiB, with a BOM and CRLF, is read', async (context) => {
    const text = '\ufeff[node]\r\nname = café\r\n';
    const padding = ';'.repeat(1024 * 1024 - Buffer.byteLength(text));
    const folder = await makeFolder(context, { 'server.ini': text + padding });
    assert.equal((await requireIni(join(folder, 'server.ini'))).node.name, 'café');
  });
});

test('an empty ini file gives the defaults', async (context) => {
  const folder = await makeFolder(context, { 'server.ini': '' });
  const file = join(folder, 'server.ini');
  const { sections: _, besides, ...config } = await requireIni(file);
  assert.deepEqual(besides, { files: [], patterns: [] });
  assert.deepEqual(config, {
    file,
    includedFiles: [],
    privatePaths: [join(folder, 'data')],
    variables: {},
    server: {
      listen: [{ kind: 'tcp', scheme: 'http', host: '127.0.0.1', port: 8080 }],
      include: [],
      data: join(folder, 'data'),
      import: undefined,
      base: '',
      publicUrl: undefined,
      console: 'yes',
      trustProxy: [],
      proxyProtocol: [],
      connectionsPerAddress: 2_000,
      workers: 1,
    },
    tls: {
      certificates: [],
      acme: {
        hosts: [],
        directory: 'https://acme-v02.api.letsencrypt.org/directory',
        email: undefined,
        eabKid: undefined,
        eabKeyFile: undefined,
        profile: undefined,
        allowPrivate: [],
        caFile: undefined,
        ...{ dnsHook: undefined, dnsServer: undefined, dnsKeyFile: undefined, dnsWaitMs: 10_000 },
        ...{ onDemandUrl: undefined, onDemandRate: 10, onDemandMax: 1_000, onDemandWaitMs: 8_000 },
      },
      httpRedirect: true,
      hsts: undefined,
    },
    disk: [],
    proxies: [],
    headers: [],
    redirects: [],
    rewrites: [],
    access: [],
    rates: [],
    login: {
      ...{ issuer: undefined, clientId: undefined, clientSecret: undefined, clientAuth: 'basic' },
      ...{ scopes: ['openid'], user: ['sub'], roles: ['roles'], lifetimeMs: 43_200_000 },
      ...{ signedOut: '/', consoleRoles: [], consoleScopes: ['admin'] },
      ...{ title: undefined, prefix: undefined },
    },
    logins: [],
    fetch: {
      allowPrivate: [],
      connectTimeoutMs: 3_000,
      timeoutMs: 30_000,
      cacheBytesMax: 268_435_456,
      bodyBytesMax: 67_108_864,
    },
    auth: {
      anonymous: ['render'],
      keyRate: undefined,
      corsOrigins: ['*'],
      userHeader: undefined,
      rolesHeader: undefined,
      jwtJwks: undefined,
      jwtIssuer: undefined,
      jwtAudience: undefined,
      jwtCookie: 'jwt',
      jwtUser: ['sub'],
      jwtRoles: ['roles'],
      allowPrivate: [],
    },
    engines: [],
    eventTypes: [],
    tables: [],
    webhook: {
      allowPrivate: [],
      connectTimeoutMs: 3_000,
      timeoutMs: 15_000,
      concurrency: 64,
      retentionMs: 2_592_000_000,
      localAddress: undefined,
      retryMs: [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400].map((s) => s * 1_000),
    },
    node: {
      role: 'all',
      name: 'boathouse',
      central: undefined,
      keyFile: undefined,
      outboxEntriesMax: 1_000_000,
      outboxBytesMax: 4 * 2 ** 30,
      place: undefined,
    },
    cluster: {
      servers: [],
      name: 'waymark',
      credentialsFile: undefined,
      user: undefined,
      passwordFile: undefined,
      caFile: undefined,
      certFile: undefined,
      keyFile: undefined,
      secretsKeyFile: undefined,
    },
    asset: { bytesMax: 268_435_456, retentionMs: 2_592_000_000, variantsBytesMax: 2 ** 30 },
    geo: {
      database: undefined,
      countryHeader: undefined,
      regionHeader: undefined,
      cityHeader: undefined,
    },
    review: { required: false },
    mcp: { enabled: true },
    stats: { retentionMs: 7_776_000_000 },
    log: {
      level: 'info',
      access: true,
      format: 'pretty',
      fields: [],
      line: undefined,
      redact: [],
      file: undefined,
      syslog: undefined,
      rotateBytes: undefined,
      rotateAgeMs: undefined,
      rotateKeep: 7,
      explain: false,
      paths: [],
    },
    telemetry: {
      ...{ endpoint: undefined, service: 'waymark', sample: 1, trust: [], headers: undefined },
    },
    modules: [],
  });
});

test('every key reaches the configuration', async (context) => {
  const folder = await makeFolder(context, {
    ...files,
    'conf/eab.key': 'c2VjcmV0LXNlY3JldC1zZWNyZXQ',
    'conf/tsig.key':
      'key "waymark" { algorithm hmac-sha256; secret "c2VjcmV0LXNlY3JldC1zZWNyZXQ="; };',
    'conf/cluster.key': `${Buffer.alloc(32, 7).toString('base64')}\n`,
    'conf/server.ini': `
[server]
listen[] = :8080
listen[] = https://[::]
listen[] = unix:run/w.sock
data = ../data
import = rules.ndjson
base = /app/
public_url = https://Lamps.example:443
trust_proxy = 10.0.0.0/8, ::1
workers = auto
[tls]
cert = cert.pem
key = key.pem
http_redirect = no
hsts = 365d subdomains preload
acme_directory = https://ca.lamps.example/dir
acme_email = admin@lamps.example
acme_eab_kid = customer 7
acme_eab_key = eab.key
acme_profile = shortlived
acme_ca = cert.pem
acme_allow_private = 10.0.0.0/8
acme_dns_server = NS.example:5353
acme_dns_key = tsig.key
acme_dns_wait = 1m
acme_on_demand = http://10.0.0.3:3000/domains?kind=shop
acme_on_demand_rate = 3
acme_on_demand_max = 50
acme_on_demand_wait = 2s
[tls.shop.example.com]
acme = yes
[tls.www.example.com]
cert = cert.pem
key = key.pem
[disk.site]
fallback = /app/shell.html
errors = /app
[fetch]
allow_private = 127.0.0.1
[auth]
anonymous = read, render, read
key_rate = 250
cors_origins = https://a.example, http://B.example:80
user_header = X-User
roles_header = X-Roles
jwt_jwks = jwks.json
jwt_issuer = https://id.example/
jwt_audience = lamps
jwt_cookie = __Host-token
jwt_user = https://id.example/name
jwt_roles = realm_access.roles
[engine.markdown]
page = /markdown%20page.html
script = /assets/markdown.js?v=2
reference = https://docs.example/markdown
[engine.html]
[table.products]
schema = tables/products.json
[node]
role = counter
name = \${SHOP} 7
outbox_entries = 500
outbox_size = 1MiB
place = Zürich, Enge
[geo]
database = geo.mmdb
country_header = CF-IPCountry
region_header = CF-Region-Code
city_header = CF-IPCity
[cluster]
servers = 10.0.0.5, TLS://[fd00::5]:4223
name = shop
user = waymark
password_file = eab.key
ca = cert.pem
cert = cert.pem
key = key.pem
secrets_key_file = cluster.key
`,
  });
  const config = await requireIni(join(folder, 'conf/server.ini'), { SHOP: 'Harbour' });
  const { server, tls, auth, fetch } = config;
  assert.deepEqual(server.listen, [
    { kind: 'tcp', scheme: 'http', host: '', port: 8080 },
    { kind: 'tcp', scheme: 'https', host: '::', port: 443 },
    { kind: 'unix', path: join(folder, 'conf/run/w.sock') },
  ]);
  assert.deepEqual(
    [server.data, server.import, server.base, server.publicUrl, server.workers],
    [join(folder, 'data'), join(folder, 'conf/rules.ndjson'), '/app', 'https://lamps.example', 6],
  );
  assert.ok(cidrsContain(server.trustProxy, '10.1.2.3'));
  assert.ok(cidrsContain(server.trustProxy, '::1'));
  assert.ok(!cidrsContain(fetch.allowPrivate.filter(isCidr), '127.0.0.2'));
  const certificate = {
    certFile: join(folder, 'conf/cert.pem'),
    keyFile: join(folder, 'conf/key.pem'),
  };
  assert.deepEqual(
    tls.acme.allowPrivate.map(({ text }) => text),
    ['10.0.0.0/8'],
  );
  assert.deepEqual(tls, {
    acme: {
      hosts: ['shop.example.com'],
      directory: 'https://ca.lamps.example/dir',
      email: 'admin@lamps.example',
      eabKid: 'customer 7',
      eabKeyFile: join(folder, 'conf/eab.key'),
      profile: 'shortlived',
      allowPrivate: tls.acme.allowPrivate,
      caFile: join(folder, 'conf/cert.pem'),
      ...{ dnsHook: undefined, dnsServer: { host: 'ns.example', port: 5353 } },
      ...{ dnsKeyFile: join(folder, 'conf/tsig.key'), dnsWaitMs: 60_000 },
      ...{ onDemandUrl: 'http://10.0.0.3:3000/domains?kind=shop', onDemandWaitMs: 2_000 },
      ...{ onDemandRate: 3, onDemandMax: 50 },
    },
    certificates: [
      { host: undefined, ...certificate },
      { host: 'www.example.com', ...certificate },
    ],
    httpRedirect: false,
    hsts: 'max-age=31536000; includeSubDomains; preload',
  });
  assert.equal(config.disk[0]?.root, join(folder, 'site'));
  assert.equal(config.disk[0].fallback, 'app/shell.html');
  assert.equal(config.disk[0].errors, 'app');
  assert.deepEqual(auth, {
    anonymous: ['read', 'render'],
    keyRate: 250,
    corsOrigins: ['https://a.example', 'http://b.example'],
    userHeader: 'x-user',
    rolesHeader: 'x-roles',
    jwtJwks: join(folder, 'conf/jwks.json'),
    jwtIssuer: 'https://id.example/',
    jwtAudience: 'lamps',
    jwtCookie: '__Host-token',
    jwtUser: ['https://id.example/name'],
    jwtRoles: ['realm_access', 'roles'],
    allowPrivate: [],
  });
  assert.deepEqual(config.engines, [
    {
      name: 'markdown',
      page: '/markdown page.html',
      script: '/assets/markdown.js?v=2',
      reference: 'https://docs.example/markdown',
    },
    { name: 'html', page: undefined, script: undefined, reference: undefined },
  ]);
  const [table] = config.tables;
  assert.deepEqual([config.tables.length, table?.name], [1, 'products']);
  assert.equal(table?.schemaFile, join(folder, 'conf/tables/products.json'));
  assert.deepEqual(table.definition, {
    name: 'products',
    schema: { type: 'object', properties: { name: { type: 'string' } } },
  });
  assert.deepEqual(config.node, {
    role: 'counter',
    name: 'Harbour 7',
    central: undefined,
    keyFile: undefined,
    outboxEntriesMax: 500,
    outboxBytesMax: 2 ** 20,
    place: 'Zürich, Enge',
  });
  assert.deepEqual(config.cluster, {
    servers: ['nats://10.0.0.5:4222', 'tls://[fd00::5]:4223'],
    name: 'shop',
    credentialsFile: undefined,
    user: 'waymark',
    passwordFile: join(folder, 'conf/eab.key'),
    caFile: join(folder, 'conf/cert.pem'),
    certFile: join(folder, 'conf/cert.pem'),
    keyFile: join(folder, 'conf/key.pem'),
    secretsKeyFile: join(folder, 'conf/cluster.key'),
  });
  assert.deepEqual(config.geo, {
    database: join(folder, 'conf/geo.mmdb'),
    countryHeader: 'cf-ipcountry',
    regionHeader: 'cf-region-code',
    cityHeader: 'cf-ipcity',
  });
});

test('mounts are ordered: exact origin first, then the longest path', async (context) => {
  const mounts = [
    ['a', '*', '/'],
    ['b', '*', '/shop'],
    ['c', 'http://x.example', '/'],
    ['d', '*', '/shop/lamps'],
    ['e', 'http://x.example', '/shop'],
    ['f', 'http://y.example', '/'],
  ];
  const text = mounts.map(
    ([name, origin, path]) => `[disk.${name}]\norigin = ${origin}\npath = ${path}\n`,
  );
  const folder = await makeFolder(context, { ...files, 'conf/server.ini': text.join('') });
  const { disk } = await requireIni(join(folder, 'conf/server.ini'));
  assert.equal(disk.map(({ name }) => name).join(''), 'ecfdba');
});

test('a configuration is frozen', async (context) => {
  const text = '[server]\ntrust_proxy = ::1\n[disk.site]\n[table.p]\nschema = tables/products.json';
  const folder = await makeFolder(context, { ...files, 'conf/server.ini': text });
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    assert.ok(Object.isFrozen(value), path);
    for (const [name, member] of Object.entries(value)) visit(member, `${path}.${name}`);
  };
  visit(await requireIni(join(folder, 'conf/server.ini')), 'config');
});

test('a mount without `root` gets a message with the default if that folder does not exist', async (t) => {
  const folder = await makeFolder(t, { 'conf/server.ini': '[server]\n[disk.a]\npath = /a/\n' });
  const result = await readIni(join(folder, 'conf/server.ini'));
  assert.deepEqual(result.ok ? [] : result.problems.map(({ line, message }) => [line, message]), [
    [
      2,
      '[disk.a] has no `root`, and its default, `../site`, does not exist: write ' +
        '`root = <the folder to serve>`',
    ],
  ]);
});
