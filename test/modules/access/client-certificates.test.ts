import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { connect, type Http2Session } from 'node:http2';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import { ineffectiveSettings } from '../../../src/core/config/warnings.ts';
import { createAuthority, type Authority, type IssuedPair } from '../../certificates.ts';
import { temporaryFolder } from '../../folder.ts';
import { readTestConfig } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { socketSource } from '../../core/server/h1/socket-source.ts';
import { readReply } from '../../core/server/h2/client.ts';
import { eventually } from '../files/disk-rig.ts';
import { startTlsSite, type TlsAnswer, type TlsSite } from '../../core/server/tls/tls-rig.ts';

/** Two authorities of the same name, as a forger would make the second. */
const [staff, forger] = await Promise.all([createAuthority(), createAuthority()]);
const ann = await staff.issue(['ann', 'ann.example.com']);
const forged = await forger.issue(['ann', 'ann.example.com']);
const ended = await staff.issue(['ann'], { days: -0.5 });

const names = ['staff.example', 'other.example', 'third.example', 'localhost'];
const files = {
  'staff.pem': staff.cert,
  'other.pem': forger.cert,
  'site/a.txt': 'a file',
};
const rules = [{ path: '/page', kind: 'content', content: 'a page' }];

/** Two hosts with authorities of their own, and a third one without. */
const ini = `
[disk.site]
root = site
[access.staff]
origin = https://staff.example
path = /*
client_certificate = staff.pem
[access.other]
origin = https://other.example
client_certificate = other.pem
`;

function start(t: TestContext, more = ini, given: object = {}): Promise<TlsSite> {
  return startTlsSite(t, { certificates: { tls: names }, ini: more, files, rules, ...given });
}

/** An answer over HTTP/1.1, on a connection for one host; `host` is the field Host. */
function over1(
  site: TlsSite,
  { name, path = '/page', pair, host = name }: Asking,
): Promise<TlsAnswer> {
  const servername = name;
  return site.ask(`https://${host}:${site.tlsPort}${path}`, {
    ...{ servername, ...pair },
    headers: { host: `${host}:${site.tlsPort}` },
    checkServerIdentity: () => undefined,
  });
}

interface Asking {
  readonly name: string;
  readonly path?: string;
  readonly pair?: IssuedPair | undefined;
  readonly host?: string;
}

function session2(t: TestContext, site: TlsSite, name: string, pair?: IssuedPair): Http2Session {
  const session = connect(`https://${name}:${site.tlsPort}`, {
    createConnection: () =>
      connectTls({
        ...{ host: '127.0.0.1', port: site.tlsPort, servername: name, ...pair },
        ...{ ca: site.authority.cert, ALPNProtocols: ['h2'] },
      }),
  });
  session.on('error', () => undefined);
  t.after(() => {
    session.destroy();
  });
  return session;
}

async function over2(t: TestContext, site: TlsSite, asking: Asking): Promise<TlsAnswer> {
  const { name, path = '/page', pair, host = name } = asking;
  const session = session2(t, site, name, pair) as ReturnType<typeof connect>;
  const stream = session.request({ ':path': path, ':authority': `${host}:${site.tlsPort}` });
  const { status = 0, headers, body } = await readReply(stream);
  return { status, headers: headers as TlsAnswer['headers'], body: body.toString() };
}

const needed = /This page needs a client certificate\./;
const unknown = /The client certificate is of no authority that this page accepts\./;
const misdirected = /needs a client certificate on a connection/;

suite('client_certificate', () => {
  const cases: readonly (readonly [string, Asking, number, RegExp])[] = [
    ['a certificate of the authority', { name: 'staff.example', pair: ann }, 200, /a page/],
    ['none', { name: 'staff.example' }, 403, needed],
    [
      'one of another authority of the same name',
      { name: 'staff.example', pair: forged },
      403,
      unknown,
    ],
    ['one that has ended', { name: 'staff.example', pair: ended }, 403, /certificate has ended\./],
    ['none at a host that asks for none', { name: 'third.example' }, 200, /a page/],
    ['that of another host', { name: 'other.example', pair: ann }, 403, unknown],
    ['the right one of that host', { name: 'other.example', pair: forged }, 200, /a page/],
    [
      'a host behind the name of another',
      { name: 'third.example', host: 'staff.example', pair: ann },
      421,
      misdirected,
    ],
    [
      'two hosts with other authorities',
      { name: 'other.example', host: 'staff.example', pair: forged },
      421,
      misdirected,
    ],
    [
      'a name without certificate',
      { name: 'elsewhere.example', host: 'staff.example', pair: ann },
      421,
      misdirected,
    ],
  ];
  test('decides for each host, over HTTP/1.1 and HTTP/2', async (t) => {
    const site = await start(t);
    for (const [what, asking, status, says] of cases) {
      for (const path of ['/page', '/a.txt'])
        for (const answer of [
          await over1(site, { ...asking, path }),
          await over2(t, site, { ...asking, path }).catch((error: unknown) => ({
            status: 0,
            body: String(error),
          })),
        ]) {
          // Node's client of HTTP/2 refuses a certificate for another name.
          if (answer.status === 0 && asking.name === 'elsewhere.example') continue;
          assert.equal(answer.status, status, `${what}: ${answer.body}`);
          if (status !== 200) assert.match(answer.body, says, what);
        }
    }
  });

  test('asks no client of other hosts for a certificate', async (t) => {
    const site = await start(t);
    for (const [servername, isAsked] of [
      ['staff.example', true],
      ['third.example', false],
      ['', false],
    ] as const) {
      const socket = await site.shake({
        ...{ ...ann, maxVersion: 'TLSv1.2' as const },
        ...(servername !== '' && { servername }),
        checkServerIdentity: () => undefined,
      });
      // A client of TLS 1.2 gets the algorithms for its signature with the question.
      assert.equal(socket.getSharedSigalgs().length > 0, isAsked, servername);
    }
  });

  test('needs a TLS connection', async (t) => {
    const site = await start(t, ini.replaceAll('origin = https://staff.example\n', ''), {
      tls: 'http_redirect = no',
    }).catch((error: unknown) => error);
    assert.ok(site instanceof Error, 'two files for one host');
    const plain = await start(t, '[access.all]\nclient_certificate = staff.pem\n', {
      tls: 'http_redirect = no',
    });
    const answer = await fetch(`${plain.url}/page`);
    assert.equal(answer.status, 403);
    assert.match(await answer.text(), needed);
  });

  test('is no question of an earlier session', async (t) => {
    const site = await start(t);
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      const session = await sessionOf(site, { servername: 'other.example', ...forged, maxVersion });
      const options = { servername: 'staff.example', maxVersion, ...(session && { session }) };
      const socket = await site.shake({ ...options, checkServerIdentity: () => undefined });
      assert.equal(socket.isSessionReused(), false);
      assert.match(await get(socket, 'staff.example', site.tlsPort), /^HTTP\/1\.1 403 /);
    }
  });

  test('holds for HTTP/2 connections that several hosts share', async (t) => {
    const site = await start(t);
    const session = session2(t, site, 'third.example', ann) as ReturnType<typeof connect>;
    const ask = (host: string) =>
      readReply(session.request({ ':path': '/page', ':authority': `${host}:${site.tlsPort}` }));
    assert.equal((await ask('third.example')).status, 200);
    assert.equal((await ask('staff.example')).status, 421);
    // The connection goes on for its own host.
    assert.equal((await ask('third.example')).status, 200);
  });

  test('holds for websockets', async (t) => {
    const live = await socketSource(t, (opened) => {
      opened.send('from the websocket');
    });
    const site = await start(t, `${ini}[proxy.live]\npath = /live/\nsource = ${live}\n`);
    const open = (pair?: IssuedPair) =>
      new WebSocket(`wss://staff.example:${site.tlsPort}/live/`, {
        ...{ ...pair, ca: site.authority.cert, servername: 'staff.example' },
        lookup: (_host: string, _options: unknown, done: (...given: unknown[]) => void) => {
          done(null, [{ address: '127.0.0.1', family: 4 }]);
        },
      } as object);
    for (const pair of [undefined, forged]) {
      const [, answer] = (await once(open(pair), 'unexpected-response')) as [
        unknown,
        { statusCode: number; destroy(): void },
      ];
      assert.equal(answer.statusCode, 403);
      answer.destroy();
    }
    const opened = open(ann);
    t.after(() => {
      opened.terminate();
    });
    const [message] = (await once(opened, 'message')) as [Buffer];
    assert.equal(message.toString(), 'from the websocket');
  });

  test('lets in some names only, and one of several conditions', async (t) => {
    const named = (list: string, more = '') =>
      `[access.a]\norigin = https://staff.example\nclient_certificate = staff.pem\n` +
      `certificate_names = ${list}\n${more}`;
    const bob = await staff.issue(['bob', 'bob.example.com']);
    const site = await start(t, named('carl, ann.example.com'));
    assert.equal((await over1(site, { name: 'staff.example', pair: ann })).status, 200);
    const refused = await over1(site, { name: 'staff.example', pair: bob });
    assert.equal(refused.status, 403);
    assert.match(refused.body, /has no name that may see this page/);

    const either = await start(t, named('ann', 'satisfy = any\nallow = 127.0.0.1\n'));
    assert.equal((await over1(either, { name: 'staff.example' })).status, 200);
    const both = await start(t, named('ann', 'allow = 10.0.0.0/8\n'));
    assert.equal((await over1(both, { name: 'staff.example', pair: ann })).status, 403);
  });

  test('tells sources about the certificate, and nobody else can', async (t) => {
    const source = await httpSource(t, (request, response) => {
      response.end(JSON.stringify([request.headers['x-subject'], request.headers['x-print']]));
    });
    const site = await start(
      t,
      `${ini}[proxy.app]\npath = /app/\nsource = ${source.origin}\n[proxy.app.request_headers]\n` +
        `X-Subject = "\${client.certificate.subject}"\n` +
        `X-Print = "\${client.certificate.fingerprint}"\n`,
    );
    const path = '/app/';
    const seen = await over1(site, { name: 'staff.example', pair: ann, path });
    const [subject, print] = JSON.parse(seen.body) as [string, string];
    assert.equal(subject, 'CN=ann');
    assert.match(print, /^[0-9a-f]{64}$/);
    // Of a connection for another host, and of a client that sends the field itself.
    const headers = { host: 'third.example', 'x-subject': 'CN=ann' };
    const other = { servername: 'staff.example', ...ann, headers };
    const options = { ...other, checkServerIdentity: () => undefined };
    const answer = await site.ask(`https://third.example:${site.tlsPort}/app/`, options);
    assert.equal(answer.body, '[null,null]');
  });

  test('is explained', async (t) => {
    const site = await start(t, ini, { tls: 'http_redirect = no' });
    const { data } = await site.call('svc1.userinterface.explain', {
      path: '/page',
      origin: 'https://staff.example',
    });
    assert.match(JSON.stringify(data), /\[access\.staff\][^"]*`client_certificate`/);
  });
});

suite('a reload', () => {
  test('asks for certificates from then on, and for none any more', async (t) => {
    const site = await start(t, '');
    const ask = (pair?: IssuedPair) => over1(site, { name: 'staff.example', pair });
    const text = await readFile(site.iniFile, 'utf8');
    const use = async (more: string) => {
      await writeFile(site.iniFile, text + more);
      site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
    };
    assert.equal((await ask()).status, 200);
    await use('[access.a]\norigin = https://staff.example\nclient_certificate = staff.pem\n');
    // Until the authorities are read, nobody gets in.
    const status = async () => (await ask(ann)).status;
    assert.equal(await eventually(status, (seen) => seen !== 421), 200);
    assert.equal((await ask()).status, 403);
    assert.equal((await ask(forged)).status, 403);
    await use('');
    assert.equal((await ask()).status, 200);
  });
});

suite('a changed file of client_certificate', () => {
  test('counts for each request; other connections go on', async (t) => {
    const site = await start(t);
    const agents = [0, 1].map(() => new Agent({ keepAlive: true, maxSockets: 1 }));
    t.after(() => {
      for (const agent of agents) agent.destroy();
    });
    const ask = (at: number, name: string, pair?: IssuedPair) =>
      site.ask(`https://${name}:${site.tlsPort}/page`, {
        ...{ agent: agents[at], servername: name, ...pair },
      });
    assert.equal((await ask(0, 'staff.example', ann)).status, 200);
    assert.equal((await ask(1, 'third.example')).status, 200);
    const [kept] = Object.values(agents[1]?.freeSockets ?? {}).flat();
    await replace(site, forger);
    await site.untilLogged(/authorities of `client_certificate` were read again/);
    assert.equal((await ask(0, 'staff.example', ann)).status, 421);
    assert.equal((await ask(0, 'staff.example', ann)).status, 403);
    assert.equal((await over1(site, { name: 'staff.example', pair: forged })).status, 200);
    assert.ok(kept !== undefined && !kept.destroyed);
    assert.equal((await ask(1, 'third.example')).status, 200);

    await writeFile(join(site.folder, 'staff.pem'), 'broken');
    await site.untilLogged(/stay in use: .*staff\.pem does not contain a PEM certificate/);
    assert.equal((await over1(site, { name: 'staff.example', pair: forged })).status, 200);
  });
});

suite('the ini file of client certificates', () => {
  const listen = '[server]\nlisten = https://:443\n[tls]\ncert = a.pem\nkey = a.key\n';
  const wrong: readonly (readonly [string, RegExp])[] = [
    ['[access.a]\nallow = ::1\ncertificate_names = ann', /`certificate_names` needs `client_cert/],
    ['[access.a]\nclient_certificate = none.pem', /none\.pem.*does not exist/],
    ['[access.a]\nclient_certificate = a.key', /does not contain a PEM certificate/],
    [
      '[access.a]\norigin = https://10.0.0.5\nclient_certificate = a.pem',
      /a handshake names no address.*write the name of a host/,
    ],
    [
      '[access.a]\nclient_certificate = a.pem\n' +
        '[access.b]\norigin = https://b.example\nclient_certificate = b.pem',
      /\[access\.a\] has another file for the same host as \[access\.b\]/,
    ],
  ];
  test('is refused with one clear line', async (t) => {
    const { cert, key } = await staff.issue(['a.example']);
    const folder = await temporaryFolder(t);
    for (const [name, text] of Object.entries({ 'a.pem': cert, 'a.key': key, 'b.pem': cert })) {
      await writeFile(join(folder, name), text);
    }
    const file = join(folder, 'server.ini');
    const isRefused = async (text: string, says: RegExp): Promise<void> => {
      await writeFile(file, text);
      await assert.rejects(readTestConfig(file), says, text);
    };
    for (const [text, says] of wrong) await isRefused(`${listen}${text}\n`, says);
    await writeFile(file, '[access.a]\nclient_certificate = a.pem\n');
    assert.match(
      ineffectiveSettings(await readTestConfig(file)).join(),
      /\[access\.a\] client_certificate lets nobody in: no `listen` uses TLS\./,
    );
  });
});

async function replace(site: TlsSite, { cert }: Authority): Promise<void> {
  const file = join(site.folder, 'staff.pem');
  await writeFile(`${file}.new`, cert);
  await rename(`${file}.new`, file);
}

/** The session that a client has after an answer; undefined if it got none. */
async function sessionOf(site: TlsSite, options: ConnectionOptions): Promise<Buffer | undefined> {
  const socket = await site.shake({ ...options, checkServerIdentity: () => undefined });
  let session: Buffer | undefined;
  socket.on('session', (one: Buffer) => (session = one));
  await get(socket, options.servername ?? '', site.tlsPort);
  return session;
}

async function get(socket: TLSSocket, host: string, port: number): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  socket.write(`GET /page HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: close\r\n\r\n`);
  await once(socket, 'close');
  return text;
}
