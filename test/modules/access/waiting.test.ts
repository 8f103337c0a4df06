import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type ClientHttp2Session } from 'node:http2';
import { suite, test, type TestContext } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { createAuthority, type IssuedPair } from '../../certificates.ts';
import { startSite, type TestSite } from '../../harness.ts';
import { loginIni, startProvider } from '../login/provider.ts';
import { TestVisitor } from '../login/visitor.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { readReply } from '../../core/server/h2/client.ts';
import { startTlsSite } from '../../core/server/tls/tls-rig.ts';
import { basic, scryptLine } from './passwords.ts';

/** A source that says for whom an answer is, once the test lets it answer. */
async function slowSource(t: TestContext) {
  let release = Promise.withResolvers<undefined>();
  const { origin } = await httpSource(t, ({ headers, url = '' }, response) => {
    const { 'x-who': who = 'nobody' } = headers;
    void release.promise.then(() => {
      response.setHeader('cache-control', 'max-age=600').end(`${url} for ${String(who)}`);
    });
  });
  return {
    origin,
    /** Holds answers back until the returned function is called. */
    hold(): () => void {
      const held = Promise.withResolvers<undefined>();
      release = held;
      return () => {
        held.resolve(undefined);
      };
    },
  };
}

/** A visitor with a connection of its own. */
interface Visitor {
  readonly session: ClientHttp2Session;
  readonly fields: Readonly<Record<string, string>>;
}

/** Asks as each visitor at the same time; the source answers when all of them wait. */
async function together(
  source: Awaited<ReturnType<typeof slowSource>>,
  visitors: readonly Visitor[],
  path: string,
): Promise<readonly string[]> {
  const release = source.hold();
  const answers = visitors.map(({ session, fields }) => {
    return readReply(session.request({ ':path': path, ...fields }, { endStream: true }));
  });
  // A connection gets this answer when its request before has come to the source or to a wait.
  for (const { session } of visitors) await readReply(session.request({ ':path': '/svc1/health' }));
  release();
  return (await Promise.all(answers)).map(({ status, body }) => `${status} ${body.toString()}`);
}

function open(t: TestContext, site: TestSite, fields: Visitor['fields'] = {}): Visitor {
  const session = connect(site.url);
  t.after(() => {
    session.destroy();
  });
  return { session, fields };
}

const proxy = ({ origin }: { readonly origin: string }, who: string): string =>
  `[proxy.app]\npath = /app/\nsource = ${origin}\n` +
  `[proxy.app.request_headers]\nX-Who = \${${who}}\n`;

suite('visitors who wait for one slow source get what is made for them', () => {
  test('with passwords, and those without one get none of it', async (t) => {
    const source = await slowSource(t);
    const site = await startSite(t, {
      ini: `${proxy(source, 'user')}[access.app]\npath = /app/*\npassword_file = users.txt\n`,
      files: { 'users.txt': `${scryptLine('ann', 'a')}\n${scryptLine('bob', 'b')}\n` },
    });
    const [ann, bob, nobody] = [
      open(t, site, { authorization: basic('ann', 'a') }),
      open(t, site, { authorization: basic('bob', 'b') }),
      open(t, site),
    ];
    // Their passwords are remembered, so that they come to the source at once.
    for (const one of [ann, bob]) await together(source, [one], '/app/before');
    for (const path of ['/app/a', '/app/a', '/app/b']) {
      const [first, second, none] = await together(source, [ann, bob, nobody], path);
      // The source does not learn the password, so it makes one answer for both.
      assert.deepEqual([first, second], [`200 ${path} for nobody`, `200 ${path} for nobody`]);
      assert.match(none ?? '', /^401 (?!.*for nobody)/s);
    }
  });

  test('with sessions of [login]', async (t) => {
    const [source, provider] = await Promise.all([slowSource(t), startProvider(t)]);
    const site = await startSite(t, {
      ini: `${proxy(source, 'user')}[access.app]\npath = /app/*\nusers = yes\n${loginIni(provider)}`,
    });
    const visitors: Visitor[] = [];
    for (const name of ['ann', 'bob']) {
      const browser = new TestVisitor();
      provider.claims = { sub: name, preferred_username: name };
      await browser.open(await browser.upToCallback(`${site.url}/svc1/login/sign-in`));
      const cookie = [...browser.cookies].map((pair) => pair.join('=')).join('; ');
      visitors.push(open(t, site, { cookie }));
    }
    const path = '/app/a';
    const wanted = ['ann', 'bob'].map((name) => `200 ${path} for ${name}`);
    for (const order of [visitors, visitors.toReversed()]) {
      const answers = await together(source, order, path);
      assert.deepEqual(answers.toSorted(), wanted);
    }
    const none = await together(source, [open(t, site)], path);
    assert.match(none.join(), /^401 (?!.* for (?:ann|bob))/s);
  });

  test('with client certificates', async (t) => {
    const [source, authority] = await Promise.all([slowSource(t), createAuthority()]);
    const site = await startTlsSite(t, {
      ini: `${proxy(source, 'client.certificate.subject')}[access.app]\npath = /app/*\nclient_certificate = ca.pem\n`,
      files: { 'ca.pem': authority.cert },
    });
    const visitor = async (pair: Partial<IssuedPair>): Promise<Visitor> => {
      const socket = connectTls({
        ...{ host: '127.0.0.1', port: site.tlsPort, servername: 'localhost', ...pair },
        ...{ ca: site.authority.cert, ALPNProtocols: ['h2'] },
      });
      await once(socket, 'secureConnect');
      const session = connect(`https://localhost:${site.tlsPort}`, {
        createConnection: () => socket,
      });
      t.after(() => {
        session.destroy();
      });
      return { session, fields: {} };
    };
    const [ann, bob] = await Promise.all([authority.issue(['ann']), authority.issue(['bob'])]);
    const visitors = [await visitor(ann), await visitor(bob), await visitor({})];
    for (const path of ['/app/a', '/app/a', '/app/b']) {
      const [first, second, none] = await together(source, visitors, path);
      assert.match(first ?? '', /^200 .* for .*ann/);
      assert.match(second ?? '', /^200 .* for .*bob/);
      assert.match(none ?? '', /^403 (?!.* for .*(?:ann|bob))/s);
    }
  });

  test('in the preview of a draft', async (t) => {
    const source = await slowSource(t);
    const rule = (headers: object) => ({ source: `${source.origin}/*`, headers });
    const site = await startSite(t, {
      ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
      rules: [
        { path: '/fetched/*', kind: 'content.fetch', enginedata: rule({ 'X-Who': 'everybody' }) },
      ],
    });
    await site.call('svc1.draft.insert', { name: 'next' });
    const { rows } = (await site.call('svc1.userinterface.list', {})).data;
    const v = { id: rows[0].id, enginedata: rule({ 'X-Who': 'reviewers' }) };
    await site.call('svc1.userinterface.edit', v, { draft: 'next' });
    const { data } = await site.call('svc1.draft.preview', { draft: 'next' });
    const browser = new TestVisitor();
    await browser.open(String(data.url));
    const cookie = [...browser.cookies].map((pair) => pair.join('=')).join('; ');
    const visitors = [open(t, site), open(t, site, { cookie })];
    for (const path of ['/fetched/a', '/fetched/a', '/fetched/b']) {
      const [live, preview] = await together(source, visitors, path);
      assert.match(live ?? '', /^200 .* for everybody$/);
      assert.match(preview ?? '', /^200 .* for reviewers$/);
    }
  });
});
