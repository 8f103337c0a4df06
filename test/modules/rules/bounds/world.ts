import assert from 'node:assert/strict';
import type { Bounds } from '../../../../src/core/values/bounds.ts';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';

/** The word that everything outside of the bounds of the keys of this world has in its texts. */
export const secret = 'outsideword';

/** The origin and the path inside. */
export const inside = { origin: 'https://one.example', path: '/blog/' } as const;

/** A site with a part inside of the bounds of a key, and much around it. */
export interface BoundedWorld {
  readonly site: TestSite;
  /** Ids of page rules inside, by their names. */
  readonly ours: Readonly<Record<string, string>>;
  /** A transaction that has changed page rules inside and outside. */
  readonly txn: string;
  /** A page rule that was inside once. */
  readonly left: string;
  /** Ids and names of what is outside, by what they name. */
  readonly theirs: Readonly<Record<string, string>>;
  /** Makes a key. */
  readonly key: (scopes: readonly string[], bounds?: Bounds) => Promise<string>;
}

/** The bounds that the rules of `ours` are inside of. */
export const bounds: Bounds = { origins: [inside.origin], paths: [inside.path] };

/** Starts the site; a rule came in from outside, one left, and one was removed there. */
export async function startWorld(
  t: Parameters<typeof startSite>[0],
  { origins, paths }: Bounds = bounds,
): Promise<BoundedWorld> {
  const site = await startSite(t, {
    ini:
      `[disk.${secret}files]\nroot = files\n` +
      `[redirect.${secret}]\npath = /r\nto = /${secret}\n[auth]\nanonymous =\n`,
    files: {
      [`files/${secret}.txt`]: secret,
      'files/blog/filed.html': secret,
      [`files/blog/${secret}.html`]: '',
    },
  });
  const done = async (name: string, v: object, more = {}): Promise<Answer['data']> => {
    const { data, error } = await site.call(`svc1.${name}`, v, more);
    assert.equal(error, undefined, `${name} ${JSON.stringify(v)}: ${error?.message ?? ''}`);
    return data;
  };
  const rule = (name: string, v: object, more = {}): Promise<Answer['data']> =>
    done(`userinterface.${name}`, v, more);
  const { origin } = inside;
  // Outside is another path of the origin, or another origin if all of its paths are inside.
  const outer = paths === undefined ? 'https://two.example' : origin;
  const beside = (path: string): string => (origins === undefined ? `/${secret}${path}` : path);
  const at = async (path: string, more: object = {}): Promise<string> =>
    (await rule('insert', { origin, path, kind: 'content', ...more })).id;
  const out = (path: string, more: object = {}): Promise<string> =>
    at(path, { origin: outer, content: secret, ...more });

  const ours = {
    page: await at('/blog/page', { content: 'ours' }),
    below: await at('/blog/*', { content: 'below' }),
    key: await at('/blog/go', { kind: 'resolve', enginedata: { target: '/blog/page' } }),
    leading: await at('/blog/on', { kind: 'resolve', enginedata: { target: 'key:beyond' } }),
    came: await out(`/${secret}/came`, { content: `${secret} before`, table: secret }),
  };
  const left = await at('/blog/left', { content: 'when here' });
  await rule('edit', { id: ours.came, content: `${secret} later` });
  const arrival = { origin, path: '/blog/came', content: 'came', table: null };
  await rule('edit', { id: ours.came, ...arrival });
  await rule('edit', { id: left, origin: outer, path: `/${secret}/left`, content: secret });

  const around = await out('/*', { enginecomments: secret });
  const everywhere = await out(beside('/blog/page'), { origin: '*', rve: 9 });
  const gone = await out(`/${secret}/gone`);
  const { digest } = await rule('invalidate', { id: gone });
  await rule('invalidate', { id: gone, confirm: digest });
  const waiting = await out(beside('/blog/waits'), { origin: `${secret}:` });
  const resolve = { kind: 'resolve', enginedata: { target: `/${secret}` }, content: undefined };
  const key = await out('beyond', resolve);
  const elsewhere = await out(beside('/blog/page'), { origin: 'https://two.example' });

  const visited = await out(`${secret}-visited`, { ...resolve, origin: '*' });
  const link = `${site.url}/svc1/userinterface.link.htm?k=${secret}-visited`;
  const visit = await fetch(link, { headers: { apikey: site.adminKey }, redirect: 'manual' });
  assert.equal(visit.status, 302);

  const lines = [
    { origin: outer, path: `/${secret}/i`, content: secret },
    { origin, path: '/blog/imported', content: 'imported' },
  ];
  const ndjson = lines.map((one) => JSON.stringify(one)).join('\n');
  const { txn } = await rule('import', { ndjson });
  const { rows } = await rule('list', { origin, path: '/blog/imported' });
  const mixed = rows[0].id as string;

  const hook = (
    await done('webhook.insert', { url: `https://${secret}.example/`, name: secret, event: ['*'] })
  ).id;
  const table = `${secret}rows`;
  const made = await done('table.insert', { name: table, schema: { type: 'object' } });
  const row = (await done('record.insert', { table, title: secret })).id;
  const event = (await done('event.insert', { type: `${secret}.made`, data: { secret } })).id;
  const draft = (await done('draft.insert', { name: `${secret} draft` })).id;
  await rule('edit', { id: around, content: `${secret} drafted` }, { draft });
  await done('draft.comment', { draft, text: secret });
  const published = (await done('draft.insert', { name: `${secret} published` })).id;
  const drafted = { origin: outer, path: `/${secret}/p`, content: secret };
  await rule('insert', drafted, { draft: published });
  const report = await done('draft.publish', { draft: published });
  const publication = await done('draft.publish', { draft: published, confirm: report.digest });
  const colleague = await done('key.insert', { name: `${secret} key`, scopes: ['read'] });
  return {
    site,
    ours: { ...ours, mixed },
    ...{ txn, left },
    theirs: {
      ...{ around, everywhere, visited, gone, waiting, key, elsewhere, hook, row, event, draft },
      ...{ published, publication: publication.txn, colleague: colleague.id, table: made.id },
      ...{ keyOf: colleague.key },
    },
    async key(scopes, bound = bounds) {
      const { key: text } = await done('key.insert', { name: 'bound', scopes, ...bound });
      return text as string;
    },
  };
}
