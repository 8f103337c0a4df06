import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { type Answer, type TestSite, startSite } from '../../harness.ts';

const crumb = (path: string, when: readonly object[], more: object = {}): object => ({
  path,
  kind: 'resolve',
  enginedata: { when, target: '/all' },
  ...more,
});

const rules = [
  crumb(
    '/sale',
    [
      {
        if: { lang: 'de' },
        target: '/de',
        headers: { 'X-Shop': 'ch ${host}', 'X-Rule': '', 'Link[]': ['</a>', '</b>'] },
        cookies: { shop: 'ch', old: '' },
      },
      { if: { lang: 'fr' }, target: 'key:sale-fr', headers: { 'X-Shop': 'first', 'X-Way': 'fr' } },
    ],
    { headers: { 'X-Rule': 'rule', 'X-Shop': 'rule' } },
  ),
  crumb('sale-fr', [
    { if: {}, html: '<p>Soldes</p>', headers: { 'X-Shop': 'fr' }, cookies: { shop: 'fr' } },
  ]),
];

interface Shown {
  readonly status: number;
  /** The fields of the answer, each a list of its lines; of get_resolve those in its data. */
  readonly fields: (name: string) => readonly string[];
}

const ofReply = async (reply: Response): Promise<Shown> => {
  await reply.text();
  return {
    status: reply.status,
    fields: (name) =>
      name === 'set-cookie'
        ? reply.headers.getSetCookie()
        : (reply.headers.get(name)?.split(', ') ?? []),
  };
};

const ofData = ({ data }: Answer): Shown => ({
  status: data.status,
  fields: (name) => {
    const named = Object.entries(data.headers ?? {}).find(([one]) => one.toLowerCase() === name);
    return named === undefined ? [] : [named[1]].flat().map(String);
  },
});

/** The ways to visit the breadcrumb `/sale` with a language. */
const visits: Readonly<
  Record<string, (t: TestContext, site: TestSite, lang: string) => Promise<Shown>>
> = {
  async visit(_t, { url }, lang) {
    const headers = { 'accept-language': lang };
    return ofReply(await fetch(`${url}/sale`, { headers, redirect: 'manual' }));
  },
  async 'link.htm'(_t, { url }, lang) {
    const headers = { 'accept-language': lang };
    const link = `${url}/svc1/userinterface.link.htm?k=/sale`;
    return ofReply(await fetch(link, { headers, redirect: 'manual' }));
  },
  async 'link.htm as JSON'(_t, { url }, lang) {
    const headers = { 'accept-language': lang, accept: 'application/json' };
    const reply = await fetch(`${url}/svc1/userinterface.link.htm?k=/sale`, { headers });
    const fields = reply.headers;
    const shown = ofData((await reply.json()) as Answer);
    assert.equal(fields.get('x-shop'), shown.fields('x-shop').join());
    return shown;
  },
  async 'get_resolve over HTTP'(_t, site, lang) {
    return ofData(await site.call('svc1.userinterface.get_resolve', { k: '/sale', lang }));
  },
  async 'get_resolve over the websocket'(_t, site, lang) {
    const socket = await site.socket(site.adminKey);
    return ofData(await socket.call('svc1.userinterface.get_resolve', { k: '/sale', lang }));
  },
  async 'get_content over the websocket'(_t, site, lang) {
    const socket = await site.socket();
    const v = { origin: site.url, path: '/sale', headers: { 'Accept-Language': lang } };
    const { data } = await socket.call('svc1.userinterface.get_content', v);
    return {
      status: data.status,
      fields: (name) => (data.headers[name] === undefined ? [] : data.headers[name].split(', ')),
    };
  },
};

suite('header fields and cookies of a branch of a breadcrumb', () => {
  for (const [title, visit] of Object.entries(visits)) {
    test(`are those of the branch that holds: ${title}`, async (t) => {
      const site = await startSite(t, { rules });
      const german = await visit(t, site, 'de');
      assert.equal(german.status, 302);
      assert.deepEqual(german.fields('x-shop'), ['ch localhost']);
      assert.deepEqual(german.fields('x-rule'), []);
      assert.deepEqual(german.fields('link'), ['</a>', '</b>']);
      assert.deepEqual(german.fields('set-cookie'), [
        'shop=ch; Path=/; SameSite=Lax',
        'old=; Path=/; SameSite=Lax; Max-Age=0',
      ]);
      const french = await visit(t, site, 'fr');
      assert.equal(french.status, 200);
      assert.deepEqual(french.fields('x-shop'), ['fr']);
      assert.deepEqual(french.fields('x-way'), ['fr']);
      assert.deepEqual(french.fields('x-rule'), ['rule']);
      assert.deepEqual(french.fields('set-cookie'), ['shop=fr; Path=/; SameSite=Lax']);
      const others = await visit(t, site, 'en');
      assert.deepEqual(others.fields('x-shop'), ['rule']);
      assert.deepEqual(others.fields('set-cookie'), []);
    });
  }

  const lines: readonly (readonly [cookies: object, line: string, secureLine?: string])[] = [
    [{ a: '1' }, 'a=1; Path=/; SameSite=Lax', 'a=1; Path=/; SameSite=Lax; Secure'],
    [{ a: { value: '1', max_age: 60 } }, 'a=1; Path=/; SameSite=Lax; Max-Age=60'],
    [{ a: { value: '1', max_age: '30d' } }, 'a=1; Path=/; SameSite=Lax; Max-Age=2592000'],
    [
      { a: { value: '1', path: '/shop', domain: 'example.com', http_only: true } },
      'a=1; Path=/shop; SameSite=Lax; Domain=example.com; HttpOnly',
    ],
    [
      { a: { value: '1', same_site: 'none', secure: false } },
      'a=1; Path=/; SameSite=None; Secure',
      'a=1; Path=/; SameSite=None; Secure',
    ],
    [
      { a: { value: '1', same_site: 'strict', secure: false } },
      'a=1; Path=/; SameSite=Strict',
      'a=1; Path=/; SameSite=Strict',
    ],
    [{ '__Host-a': '1' }, '__Host-a=1; Path=/; SameSite=Lax; Secure'],
  ];
  test('say what the cookie says, and are Secure over TLS', async (t) => {
    const site = await startSite(t, {
      server: 'trust_proxy = 127.0.0.0/8',
      rules: lines.map(([cookies], at) =>
        crumb(`/c${at}`, [{ if: {}, target: '/all', cookies, headers: { 'X-A': 'a' } }]),
      ),
    });
    for (const [at, [, line, secureLine]] of lines.entries()) {
      const ask = async (proto: string) => {
        const headers = { 'x-forwarded-proto': proto };
        const reply = await fetch(`${site.url}/c${at}`, { headers, redirect: 'manual' });
        return reply.headers.getSetCookie();
      };
      assert.deepEqual(await ask('http'), [line]);
      if (secureLine !== undefined) assert.deepEqual(await ask('https'), [secureLine]);
    }
  });

  const wrong: readonly (readonly [branch: object, field: string, reason: string])[] = [
    [{ headers: { 'X Y': 'a' } }, 'headers.X Y', 'bad_format'],
    [{ headers: { 'Content-Length': '5' } }, 'headers.Content-Length', 'bad_format'],
    [{ headers: { 'X-A': 5 } }, 'headers.X-A', 'wrong_type'],
    [{ headers: { 'X-A': '${nobody}' } }, 'headers.X-A', 'bad_format'],
    [{ headers: 'X-A: a' }, 'headers', 'wrong_type'],
    [{ headers: { 'X-A': 'a'.repeat(17_000) } }, 'headers', 'out_of_range'],
    [{ cookies: ['a=1'] }, 'cookies', 'wrong_type'],
    [{ cookies: { 'a b': '1' } }, 'cookies.a b', 'bad_format'],
    [{ cookies: { a: 'x; Domain=example.com' } }, 'cookies.a', 'bad_format'],
    [{ cookies: { a: '${user}' } }, 'cookies.a', 'bad_format'],
    [{ cookies: { a: 5 } }, 'cookies.a', 'wrong_type'],
    [{ cookies: { a: { max_age: 5 } } }, 'cookies.a.value', 'missing'],
    [{ cookies: { a: { value: '1', max_age: -5 } } }, 'cookies.a.max_age', 'bad_format'],
    [{ cookies: { a: { value: '1', httponly: true } } }, 'cookies.a.httponly', 'unknown_field'],
    [{ cookies: { a: { value: '1', path: '/;x' } } }, 'cookies.a.path', 'bad_format'],
    [{ cookies: { '__Host-a': { value: '1', path: '/a' } } }, 'cookies.__Host-a', 'bad_format'],
    [{ cookies: { waymark_login: 'x' } }, 'cookies.waymark_login', 'bad_format'],
  ];
  test('that can never be sent are named, one by one; their siblings hold', async (t) => {
    const site = await startSite(t);
    for (const [at, [branch, field, reason]] of wrong.entries()) {
      const good = { if: {}, target: '/all' };
      const { headers = {}, cookies = {} } = branch as Readonly<Record<string, object>>;
      const isWhole = field === 'headers' || field === 'cookies';
      const written = isWhole
        ? { ...good, ...branch }
        : { ...good, headers: { 'X-Good': 'yes', ...headers }, cookies: { good: '1', ...cookies } };
      const rule = crumb(`/w${at}`, [{ if: { lang: 'xx' }, target: '/x' }, written]);
      const { data } = await site.call('svc1.userinterface.insert', rule);
      const whole = `enginedata.when[1].${field}`;
      assert.deepEqual(
        data.problems.map((one: { field: string; reason: string }) => [one.field, one.reason]),
        [[whole, reason]],
      );
      assert.deepEqual(data.unknowns, [whole]);
      const reply = await fetch(`${site.url}/w${at}`, { redirect: 'manual' });
      assert.equal(reply.headers.get('location'), '/all');
      if (!isWhole) {
        assert.equal(reply.headers.get('x-good'), 'yes');
        assert.deepEqual(reply.headers.getSetCookie(), ['good=1; Path=/; SameSite=Lax']);
      }
      const strict = await site.call(
        'svc1.userinterface.insert',
        { ...rule, path: `/s${at}` },
        { headers: { prefer: 'handling=strict' } },
      );
      assert.equal(strict.error?.code, 'invalid', whole);
    }
  });

  test('of a key with bounds set nothing for the whole origin', async (t) => {
    const site = await startSite(t);
    const { data: key } = await site.call('svc1.key.insert', {
      name: 'sale',
      scopes: ['design', 'read'],
      paths: ['/sale/'],
    });
    const insert = (branch: object): Promise<Answer> =>
      site.call(
        'svc1.userinterface.insert',
        crumb('/sale/a', [{ if: {}, target: '/sale/b', ...branch }]),
        { apikey: key.key },
      );
    for (const branch of [
      { cookies: { a: '1' } },
      { headers: { 'Set-Cookie': 'a=1' } },
      { headers: { 'X-A': '${request.header.cookie}' } },
    ]) {
      const { error } = await insert(branch);
      assert.deepEqual([error?.code, error?.field], ['forbidden', 'enginedata']);
    }
    assert.equal((await insert({ headers: { 'X-A': 'a' } })).error, undefined);
  });

  test('set no cookie of the server itself, nor do those of a rule', async (t) => {
    const site = await startSite(t);
    for (const name of ['waymark_login', '__Host-waymark_login', ' waymark_draft']) {
      const headers = { 'Set-Cookie': ['a=1', `${name}=evil; Path=/`] };
      const branch = { if: {}, target: '/b', headers };
      const answers = [
        await site.call('svc1.userinterface.insert', crumb(`/a/${name.trim()}`, [branch])),
        await site.call('svc1.userinterface.insert', {
          ...{ path: `/p/${name.trim()}`, content: 'x', headers },
        }),
      ];
      for (const { data } of answers) {
        assert.equal(data.problems[0]?.reason, 'bad_format', JSON.stringify(data));
        const reply = await fetch(`${site.url}${data.path as string}`, { redirect: 'manual' });
        assert.doesNotMatch(reply.headers.get('set-cookie') ?? '', /evil/);
      }
    }
  });

  test('are explained, and compared with a draft', async (t) => {
    const site = await startSite(t, { rules });
    const url = `${site.url}/sale`;
    const { data } = await site.call('svc1.userinterface.explain', { url, lang: 'de' });
    assert.ok(
      data.notes.includes('when[0] changes X-Shop, X-Rule, Link, Set-Cookie.'),
      data.notes.join(' '),
    );
    await site.call('svc1.draft.insert', { name: 'cookies' });
    const { data: listed } = await site.call('svc1.userinterface.list', { path: '/sale' });
    const [rule] = listed.rows;
    const when = structuredClone(rule.enginedata.when);
    when[0].cookies.shop = 'de';
    await site.call(
      'svc1.userinterface.edit',
      { id: rule.id, enginedata: { ...rule.enginedata, when } },
      { draft: 'cookies' },
    );
    const { data: compared } = await site.call('svc1.draft.compare', {
      draft: 'cookies',
      urls: '/sale',
    });
    assert.deepEqual(
      compared.rows[0].branches.map((one: { branch: string; differs: string[] }) => [
        one.branch,
        one.differs,
      ]),
      [['when[0]', ['headers']]],
    );
  });
});
