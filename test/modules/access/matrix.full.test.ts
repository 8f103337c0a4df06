import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { suite, test, type TestContext } from 'node:test';
import {
  Agent,
  request as requestHttp,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http';
import { connect } from 'node:http2';
import { request as requestHttps, Agent as TlsAgent } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { WebSocket } from 'ws';
import { signedQuery } from '../../../src/modules/access/signed-links.ts';
import { createAuthority, type IssuedPair } from '../../certificates.ts';
import { startSite, type TestSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { socketSource } from '../../core/server/h1/socket-source.ts';
import { loginIni, startProvider, type TestProvider } from '../login/provider.ts';
import { readReply } from '../../core/server/h2/client.ts';
import { nextText, textFrame, websocketFields } from '../../core/server/h2/websocket-client.ts';
import { startTlsSite, type TlsSite } from '../../core/server/tls/tls-rig.ts';
import { pathOf } from '../../request-path.ts';
import { basic, scryptLine } from './passwords.ts';

/** The word in everything that only some visitors may see. */
const secret = 'forsomeonly';
const linkKey = randomBytes(32);
const authority = await createAuthority();
const pair = await authority.issue(['ann']);

/** People at the provider, each with their roles. */
const people = { ann: ['staff'], bob: ['staff'], eve: [], gone: ['staff'] } as const;
type Name = keyof typeof people;

/** The fields of a visitor, and its client certificate. */
interface Visitor {
  readonly fields?: Readonly<Record<string, string>>;
  readonly isCertified?: true;
  /** Whether it has a link for the path. */
  readonly hasLink?: true;
  /** Whose session of `[login]` it has; that of `gone` has ended. */
  readonly session?: Name;
  /** Its own address: a prepared answer is for requests without fields of a proxy. */
  readonly from?: string;
}

interface RuleCase {
  /** The lines of its section. */
  readonly ini: string;
  readonly good: readonly Visitor[];
  readonly bad: readonly Visitor[];
}

const ann = { authorization: basic('ann', 'secret of ann') };
const inside = { 'x-forwarded-for': '192.0.2.7' };
const outside = { 'x-forwarded-for': '198.51.100.7' };
const nobody: Visitor = {};

/** The kinds of access rules. */
const ruleCases: Readonly<Record<string, RuleCase>> = {
  networks: {
    ini: 'allow = 192.0.2.0/24',
    good: [{ fields: inside }],
    bad: [nobody, { fields: outside }],
  },
  near: { ini: 'allow = 127.0.0.1', good: [nobody], bad: [{ from: '127.0.0.9' }] },
  far: { ini: 'deny = 127.0.0.1', good: [{ from: '127.0.0.9' }], bad: [nobody] },
  denied: { ini: 'deny = 198.51.100.0/24', good: [nobody], bad: [{ fields: outside }] },
  file: { ini: 'deny_file = blocked.txt', good: [nobody], bad: [{ fields: outside }] },
  countries: {
    ini: 'countries = CH',
    good: [{ fields: { 'x-country': 'CH' } }],
    bad: [nobody, { fields: { 'x-country': 'US' } }],
  },
  elsewhere: {
    ini: 'deny_countries = US',
    good: [{ fields: { 'x-country': 'CH' } }, nobody],
    bad: [{ fields: outside }, { fields: { 'x-country': 'US' } }],
  },
  users: {
    ini: 'users = ann',
    good: [{ fields: { 'x-user': 'ann' } }],
    bad: [nobody, { fields: { 'x-user': 'bob', 'x-roles': 'ann' } }],
  },
  roles: {
    ini: 'roles = staff',
    good: [{ fields: { 'x-user': 'bob', 'x-roles': 'staff' } }],
    bad: [nobody, { fields: { 'x-user': 'staff' } }, { fields: { 'x-roles': 'staff' } }],
  },
  password: {
    ini: 'password_file = users.txt',
    good: [{ fields: ann }],
    bad: [nobody, { fields: { authorization: 'Basic !' } }],
  },
  forward: {
    ini: 'forward = FORWARD\ncopy = Remote-User',
    good: [{ fields: { 'x-pass': 'yes' } }],
    bad: [nobody, { fields: { 'remote-user': 'ann' } }],
  },
  certificate: {
    ini: 'client_certificate = ca.pem',
    good: [{ isCertified: true }],
    bad: [nobody],
  },
  session: {
    ini: 'users = ann, eve, gone\nroles = staff\nproviders = login',
    good: [{ session: 'ann' }],
    bad: [
      nobody,
      { session: 'bob' },
      { session: 'eve' },
      { session: 'gone' },
      { fields: { 'x-user': 'ann', 'x-roles': 'staff' } },
    ],
  },
  link: { ini: 'link_key_file = links.key', good: [{ hasLink: true }], bad: [nobody] },
  any: {
    ini: 'satisfy = any\nallow = 192.0.2.0/24\nusers = ann\npassword_file = users.txt\nlink_key_file = links.key',
    good: [{ fields: inside }, { fields: { 'x-user': 'ann' } }, { fields: ann }, { hasLink: true }],
    bad: [nobody, { fields: { 'x-user': 'bob' } }],
  },
  all: {
    ini: 'allow = 192.0.2.0/24\nroles = staff\npassword_file = users.txt',
    good: [{ fields: { ...inside, ...ann, 'x-user': 'ann', 'x-roles': 'staff' } }],
    bad: [
      nobody,
      { fields: { ...ann, 'x-user': 'ann', 'x-roles': 'staff' } },
      { fields: { ...inside, 'x-user': 'ann', 'x-roles': 'staff' } },
      { fields: { ...inside, ...ann } },
    ],
  },
};
const ruleNames = Object.keys(ruleCases);

interface SourceCase {
  /** The path for a rule. */
  readonly path: (rule: string, origin: string) => string;
  /** Whether the signature of a link to this path opens it: no other path is in between. */
  readonly takesLink?: true;
  readonly methods: readonly string[];
}

const reads = ['GET', 'HEAD'];
const own = [...reads, 'POST', 'OPTIONS', 'DELETE', 'PROPFIND'];
const direct = { takesLink: true, methods: own } as const;

/** The kinds of sources below the path of a rule, and the ways that lead to them. */
const sourceCases: Readonly<Record<string, SourceCase>> = {
  file: { ...direct, path: (rule) => `/${rule}/file.txt` },
  folder: { ...direct, path: (rule) => `/${rule}/` },
  page: { ...direct, path: (rule) => `/${rule}/page` },
  asset: { ...direct, path: (rule) => `/${rule}/asset` },
  // The page that it shows has a path of its own.
  generic: { methods: own, path: (rule) => `/${rule}/generic` },
  rendered: { ...direct, path: (rule) => `/${rule}/rendered` },
  html: { ...direct, path: (rule) => `/${rule}/html` },
  target: { ...direct, path: (rule) => `/${rule}/target` },
  fetched: { ...direct, path: (rule) => `/${rule}/fetched/cached` },
  cached: { ...direct, path: (rule) => `/${rule}/app/cached` },
  fresh: { ...direct, path: (rule) => `/${rule}/app/fresh` },
  redirect: { ...direct, path: (rule) => `/${rule}/old` },
  missing: { ...direct, path: (rule) => `/${rule}/missing` },
  rewritten: { methods: reads, path: (rule) => `/rewritten/${rule}/file.txt` },
  included: { methods: reads, path: (rule) => `/included/${rule}` },
  over: { methods: reads, path: (rule) => `/over/${rule}` },
  linked: { methods: reads, path: (rule) => `/svc1/userinterface/link.htm?k=/${rule}/html` },
  resolved: {
    methods: reads,
    path: (rule) => `/svc1/userinterface/get_resolve?_v.k=/${rule}/html`,
  },
  got: {
    methods: reads,
    path: (rule, origin) => `/svc1/userinterface/get?_v.origin=${origin}&_v.path=/${rule}/page`,
  },
  content: {
    methods: reads,
    path: (rule, origin) =>
      `/svc1/userinterface/get_content?_v.origin=${origin}&_v.path=/${rule}/page`,
  },
  render: {
    methods: reads,
    path: (rule, origin) =>
      `/svc1/userinterface/get_render?_v.origin=${origin}&_v.path=/${rule}/rendered`,
  },
};

interface Seen {
  readonly status: number;
  /** The whole answer: its fields and its content. */
  readonly text: string;
  readonly cacheControl: string;
}

/** A way to ask a site, on kept connections. */
interface Transport {
  readonly origin: string;
  readonly isSecure: boolean;
  ask(path: string, method: string, visitor: Visitor): Promise<Seen>;
  /** Asks for a websocket. */
  open(path: string, visitor: Visitor): Promise<Opened>;
  close(): void;
}

/** The answer to a request for a websocket. */
interface Opened {
  readonly isOpen: boolean;
  readonly status: number;
  /** Sends a message, and reads the next one. */
  ask(message: string): Promise<string>;
  close(): void;
}

function seenFrom(status: number, fields: object, content: Buffer): Seen {
  const { 'cache-control': cacheControl = '' } = fields as Readonly<Record<string, string>>;
  return { status, text: `${JSON.stringify(fields)}\n${content.toString()}`, cacheControl };
}

/** Keeps what `connect` makes for each certificate and address. */
function keptConnections<T>(connect: (given: Partial<IssuedPair>, localAddress?: string) => T) {
  const kept = new Map<string, T>();
  return {
    all: () => kept.values(),
    of({ isCertified, from }: Visitor): T {
      const key = `${isCertified ?? ''} ${from ?? ''}`;
      const found = kept.get(key) ?? connect(isCertified === true ? pair : {}, from);
      kept.set(key, found);
      return found;
    },
  };
}

function overHttp1(origin: string, ca?: string): Transport {
  const isSecure = origin.startsWith('https:');
  const usual = { keepAlive: true, maxSockets: 1 };
  const agents = keptConnections((given, localAddress = '127.0.0.1') =>
    isSecure
      ? new TlsAgent({ ...usual, ca, localAddress, ...given })
      : new Agent({ ...usual, localAddress }),
  );
  const send = isSecure ? requestHttps : requestHttp;
  const place = { host: '127.0.0.1', port: new URL(origin).port, servername: 'localhost' };
  const host = new URL(origin).host;
  return {
    origin,
    isSecure,
    async ask(path, method, visitor) {
      const headers = { host, ...visitor.fields };
      const sent = send({ ...place, path, method, agent: agents.of(visitor), headers }).end();
      const [message] = (await once(sent, 'response')) as [IncomingMessage];
      return seenFrom(message.statusCode ?? 0, message.headers, await buffer(message));
    },
    async open(path, visitor) {
      const { fields: headers = {}, from: localAddress } = visitor;
      const more = visitor.isCertified === true ? pair : {};
      const url = origin.replace('http', 'ws') + path;
      const socket = new WebSocket(url, { ca, ...more, headers, localAddress });
      const status = await new Promise<number>((resolve) => {
        socket.once('open', () => {
          resolve(101);
        });
        socket.once('unexpected-response', (asked, { statusCode = 0 }) => {
          resolve(statusCode);
          asked.destroy();
        });
        socket.on('error', () => undefined);
      });
      return {
        isOpen: status === 101,
        status,
        async ask(message) {
          socket.send(message);
          const [data] = (await once(socket, 'message')) as [Buffer];
          return data.toString();
        },
        close() {
          socket.terminate();
        },
      };
    },
    close() {
      for (const agent of agents.all()) agent.destroy();
    },
  };
}

function overHttp2(site: TlsSite): Transport {
  const origin = `https://localhost:${site.tlsPort}`;
  const ca = site.authority.cert;
  const sessions = keptConnections((given, localAddress = '127.0.0.1') =>
    connect(origin, {
      createConnection() {
        const socket = connectTcp({ host: '127.0.0.1', port: site.tlsPort, localAddress });
        return connectTls({ socket, servername: 'localhost', ca, ...given, ALPNProtocols: ['h2'] });
      },
    }).on('error', () => undefined),
  );
  return {
    origin,
    isSecure: true,
    async ask(path, method, visitor) {
      const fields = { ':path': path, ':method': method, ...visitor.fields };
      const stream = sessions.of(visitor).request(fields, { endStream: true });
      const { status = 0, headers, body } = await readReply(stream);
      return seenFrom(status, headers, body);
    },
    async open(path, visitor) {
      const fields = { ...websocketFields, ':path': path, ...visitor.fields };
      const stream = sessions.of(visitor).request(fields, { endStream: false });
      stream.on('error', () => undefined);
      const [headers] = (await once(stream, 'response')) as [Readonly<Record<string, number>>];
      const { ':status': status = 0 } = headers;
      return {
        isOpen: status === 200,
        status,
        ask(message) {
          stream.write(textFrame(message));
          return nextText(stream);
        },
        close() {
          stream.destroy();
        },
      };
    },
    close() {
      for (const session of sessions.all()) session.destroy();
    },
  };
}

/** A site that has all kinds of sources for all kinds of rules. */
async function startMatrix<T extends TestSite>(
  t: TestContext,
  start: (t: TestContext, given: Parameters<typeof startSite>[1]) => Promise<T>,
) {
  const asked: string[] = [];
  const app = await httpSource(t, ({ method, url = '' }, response) => {
    asked.push(`${method ?? ''} ${url}`);
    const isCached = url.includes('/cached');
    response.setHeader('cache-control', isCached ? 'public, max-age=600' : 'no-store');
    response.setHeader('x-of-source', secret).end(`${secret} ${url}`);
  });
  const provider = await startProvider(t);
  const live = await socketSource(t, (opened) => {
    asked.push('websocket');
    opened.send(secret);
  });
  const forward = await httpSource(t, ({ headers }, response) => {
    response.writeHead(headers['x-pass'] === 'yes' ? 200 : 403, { 'remote-user': 'ann' }).end();
  });
  const sections = ruleNames.map((rule) => {
    const lines = ruleCases[rule]?.ini.replace('FORWARD', `${forward.origin}/`) ?? '';
    return `
[access.${rule}]
path = /${rule}/*
${lines}
[proxy.${rule}]
path = /${rule}/app/
source = ${app.origin}
[proxy.${rule}live]
path = /${rule}/live/
source = ${live}
[redirect.${rule}]
path = /${rule}/old
to = /${secret}
`;
  });
  const rules = ruleNames.flatMap((rule) => [
    { path: `/${rule}/page`, kind: 'content', content: `${secret} page` },
    { path: `/${rule}/asset`, kind: 'content', asset: 'a.txt' },
    {
      path: `/${rule}/generic`,
      kind: 'content',
      engine: 'html',
      enginedata: { page: `/${rule}/page` },
    },
    {
      path: `/included/${rule}`,
      kind: 'content',
      engine: 'html',
      enginedata: { page: `/${rule}/page` },
    },
    { path: `/${rule}/html`, kind: 'resolve', enginedata: { html: `${secret} breadcrumb` } },
    { path: `/${rule}/target`, kind: 'resolve', enginedata: { target: `/${secret}` } },
    { path: `/over/${rule}`, kind: 'resolve', enginedata: { target: `key:/${rule}/html` } },
    {
      ...{ path: `/${rule}/rendered`, kind: 'content', engine: 'template' },
      enginedata: { page: '/frame.html', render: 'server', template: `{{ "${secret}" }}` },
    },
    {
      ...{ path: `/${rule}/fetched/*`, kind: 'content.fetch' },
      enginedata: { source: `${app.origin}/*`, methods: ['GET', 'HEAD', 'POST'] },
    },
  ]);
  const site = await start(t, {
    server: 'trust_proxy = 127.0.0.0/8',
    ini: `
[fetch]
allow_private = 127.0.0.0/8
[auth]
user_header = X-User
roles_header = X-Roles
[geo]
country_header = X-Country
${loginIni(provider, 'roles = roles')}
[log]
access = no
[disk.site]
root = site
listing = yes
[rewrite.all]
match = ^/rewritten/(.*)$
to = /$1
${sections.join('')}`,
    files: {
      'users.txt': scryptLine('ann', 'secret of ann'),
      'blocked.txt': '198.51.100.0/24\n',
      'links.key': `${linkKey.toString('base64')}\n`,
      'ca.pem': authority.cert,
      ...Object.fromEntries(
        ruleNames.flatMap((rule) => [
          [`site/${rule}/file.txt`, `${secret} file`],
          [`site/${rule}/${secret}.txt`, ''],
        ]),
      ),
    },
    rules: [
      ...rules,
      {
        ...{ path: '/frame.html', kind: 'content', contenttype: 'text/html' },
        content: '<!doctype html><title>t</title><main data-engine>frame</main>',
      },
    ],
  });
  const put = await fetch(`${site.url}/svc1/asset/a.txt`, {
    ...{
      method: 'PUT',
      body: `${secret} asset`,
      headers: { apikey: site.adminKey, 'x-forwarded-proto': 'https' },
    },
  });
  assert.equal(put.status, 200);
  return { site, asked, provider };
}

/** Signs people in over a transport, whose visitors with a session then have its cookie. */
async function withSessions(transport: Transport, provider: TestProvider): Promise<Transport> {
  const cookies = new Map<string, string>();
  const go = async (path: string, cookie = ''): Promise<IncomingHttpHeaders> => {
    const fields: Record<string, string> = cookie === '' ? {} : { cookie };
    const { text } = await transport.ask(path, 'GET', { fields });
    return JSON.parse(text.slice(0, text.indexOf('\n'))) as IncomingHttpHeaders;
  };
  const cookieIn = (headers: IncomingHttpHeaders): string =>
    (headers['set-cookie'] ?? []).map((line) => line.slice(0, line.indexOf(';'))).join('; ');
  for (const [name, roles] of Object.entries(people)) {
    provider.claims = { sub: name, preferred_username: name, roles };
    const begun = await go('/svc1/login/sign-in');
    const consent = await fetch(begun.location ?? '', { redirect: 'manual' });
    const { pathname, search } = new URL(consent.headers.get('location') ?? '');
    const session = cookieIn(await go(pathname + search, cookieIn(begun)));
    assert.match(session, /waymark_login=[^;]/);
    cookies.set(name, session);
  }
  await go('/svc1/login/sign-out', cookies.get('gone'));
  const withCookie = ({ session, fields, ...visitor }: Visitor): Visitor => ({
    ...visitor,
    fields: { ...fields, ...(session !== undefined && { cookie: cookies.get(session) ?? '' }) },
  });
  return {
    ...transport,
    ask: (path, method, visitor) => transport.ask(path, method, withCookie(visitor)),
    open: (path, visitor) => transport.open(path, withCookie(visitor)),
  };
}

const refusals: ReadonlySet<number> = new Set([401, 403, 421]);

/** The path with the query of a link, if the visitor has one. */
function pathFor(origin: string, path: string, { hasLink }: Visitor): string {
  if (hasLink !== true) return path;
  return `${path}?${signedQuery(linkKey, { origin, ...pathOf(path), query: '' }, 4_000_000_000)}`;
}

/** Asks for each cell over a transport: fresh, prepared and cached answers, in both orders. */
async function askAll(transport: Transport, asked: readonly string[]): Promise<number> {
  let count = 0;
  const ask = (path: string, method: string, visitor: Visitor): Promise<Seen> => {
    count += 1;
    return transport.ask(pathFor(transport.origin, path, visitor), method, visitor);
  };
  for (const [rule, { good, bad }] of Object.entries(ruleCases)) {
    for (const [kind, source] of Object.entries(sourceCases)) {
      const path = source.path(rule, transport.origin);
      const mayPass = good.filter(({ hasLink, isCertified }) => {
        if (hasLink === true && source.takesLink !== true) return false;
        return isCertified !== true || transport.isSecure;
      });
      for (const method of source.methods) {
        // Only answers to reads are prepared and cached.
        for (let turn = 0; turn < (reads.includes(method) ? 3 : 1); turn += 1) {
          for (const visitor of bad) {
            const what = `${method} ${path} ${JSON.stringify(visitor)} over ${transport.origin}`;
            const before = asked.length;
            const seen = await ask(path, method, visitor);
            assert.ok(refusals.has(seen.status), `${what}: ${seen.status}`);
            assert.ok(!seen.text.includes(secret), `${what}: ${seen.text}`);
            assert.match(seen.cacheControl, /no-store/, what);
            assert.equal(asked.length, before, `${what}: no source is asked`);
          }
          for (const visitor of mayPass) {
            const what = `${method} ${path} ${JSON.stringify(visitor)} over ${transport.origin}`;
            const seen = await ask(path, method, visitor);
            if (visitor.hasLink === true && !reads.includes(method)) continue;
            assert.ok(!refusals.has(seen.status), `${what}: ${seen.status} ${seen.text}`);
            assert.match(seen.cacheControl, /private|no-store/, `${what}: ${seen.text}`);
            if (method === 'GET' && kind !== 'missing')
              assert.ok(seen.text.includes(secret), `${what}: ${seen.text}`);
          }
        }
      }
    }
  }
  return count;
}

/** Opens a websocket of the application and one of the operations, as each visitor. */
async function openAll(transport: Transport, asked: readonly string[]) {
  const { origin, isSecure } = transport;
  for (const [rule, { good, bad }] of Object.entries(ruleCases)) {
    const path = `/${rule}/live/`;
    for (const [visitors, mayPass] of [
      [bad, false],
      [good, true],
    ] as const) {
      for (const visitor of visitors) {
        if (visitor.isCertified === true && !isSecure) continue;
        const what = `websocket ${path} ${JSON.stringify(visitor)} at ${origin}`;
        const before = asked.length;
        const opened = await transport.open(pathFor(origin, path, visitor), visitor);
        const { isOpen, status } = opened;
        if (mayPass) assert.ok(isOpen, `${what}: ${status}`);
        else assert.ok(refusals.has(status) && asked.length === before, `${what}: ${status}`);
        opened.close();
        const { hasLink } = visitor;
        const operations = await transport.open('/svc1/ws', visitor);
        assert.ok(operations.isOpen);
        for (const [a, v] of [
          ['svc1.userinterface.get', { origin, path: `/${rule}/page` }],
          ['svc1.userinterface.get_content', { origin, path: `/${rule}/page` }],
          ['svc1.userinterface.get_resolve', { k: `/${rule}/html` }],
        ] as const) {
          const text = await operations.ask(JSON.stringify({ a, v }));
          const isExpected = mayPass && hasLink !== true;
          assert.equal(text.includes(secret), isExpected, `${a} ${what}: ${text}`);
        }
        operations.close();
      }
    }
  }
}

suite('rules × sources × methods × protocols × fresh, prepared and cached answers', () => {
  {
    test('HTTP/1.1', async (t) => {
      const { site, asked, provider } = await startMatrix(t, (context, given) =>
        startSite(context, given),
      );
      const transport = await withSessions(overHttp1(site.url), provider);
      t.after(() => {
        transport.close();
      });
      t.diagnostic(`${await askAll(transport, asked)} requests`);
      await openAll(transport, asked);
    });
  }

  test('HTTP/2 and HTTP/1.1 over TLS', async (t) => {
    const { site, asked, provider } = await startMatrix(t, (context, given) =>
      startTlsSite(context, given),
    );
    const ca = site.authority.cert;
    const origin = `https://localhost:${site.tlsPort}`;
    for (const plain of [overHttp2(site), overHttp1(origin, ca)]) {
      t.after(() => {
        plain.close();
      });
      const transport = await withSessions(plain, provider);
      t.diagnostic(`${await askAll(transport, asked)} requests`);
      await openAll(transport, asked);
    }
  });
});
