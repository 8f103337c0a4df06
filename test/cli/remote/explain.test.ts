import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../../harness.ts';
import { runHere, startClient } from '../here.ts';

suite('waymark explain', () => {
  test('says what answers a URL, and why the others do not', async (t) => {
    const { site, waymark } = await startClient(t, {
      ini: '[disk.site]\nroot = site\n',
      files: { 'site/a.txt': 'a file' },
    });
    const { url } = site;
    const insert = async (fields: object) => {
      const { out, err } = await waymark('rule', 'insert', JSON.stringify(fields));
      assert.equal(err, '');
      return (JSON.parse(out) as { id: string }).id;
    };
    const page = await insert({ path: '/a*', kind: 'content', content: 'x', lang: 'de' });
    const other = await insert({ path: '/*', kind: 'content', content: 'x' });

    const explained = await waymark('explain', '/a.txt', '--lang', 'de');
    assert.deepEqual([explained.code, explained.err], [0, '']);
    assert.equal(
      explained.out,
      `GET ${url}/a.txt is answered by the mount site, with 200.

disk
  * site at /

stored
    ${page} (content) at /a*
      The source disk comes first, and disk:site answers. [earlier_source]
    ${other} (content) at /*
      Another rule has the longer wildcard /a*. [shorter_wildcard]

content.fetch
  no candidate

fallback
  no candidate
`,
    );
    const excluded = await waymark('explain', `${url}/ab`, '--lang', 'de;q=0', '--method', 'post');
    assert.match(excluded.out, new RegExp(`^POST ${url}/ab is .* rule ${other}, with 405\\.\n`));
    const before = await waymark('explain', '/none', '--as-of', '0');
    assert.match(
      before.out,
      /by no source: the status is 404\.\nPage rules and time are those of 0;/,
    );

    const json = await waymark('explain', '/a.txt', '--json', '--country', 'CH', '--user', 'ann');
    const { r, data } = JSON.parse(json.out) as { r: string; data: { winner: object } };
    assert.equal(r, 'svc1.userinterface.explain');
    assert.deepEqual(data.winner, { source: 'disk', mount: 'site', status: 200 });
  });

  test('follows the key of a breadcrumb to other keys', async (t) => {
    const { url, adminKey } = await startSite(t);
    const words = ['--url', url, '--apikey', adminKey];
    for (const [path, target] of [
      ['spring', 'key:summer'],
      ['summer', '/offers'],
    ] as const) {
      const fields = JSON.stringify({ path, kind: 'resolve', enginedata: { target } });
      assert.equal((await runHere(['rule', 'insert', fields, ...words])).code, 0);
    }
    const link = `${url}/svc1/userinterface.link.htm?k=spring`;
    const { out } = await runHere(['explain', link, ...words]);
    assert.match(out, /^The breadcrumb spring of .*, with 302\.\nIt leads to \/offers\.\n/);
    assert.match(
      out,
      /\nstored, key spring\n {2}\* .*\n\nstored, key summer\n {2}\* .* at summer\n$/,
    );
  });

  test('is refused without a URL, a server or a key', async (t) => {
    const { url } = await startSite(t);
    const none = await runHere(['explain', '--url', url]);
    assert.deepEqual([none.code, none.out], [2, '']);
    assert.match(none.err, /^waymark: missing required argument 'url'\n/);
    assert.equal((await runHere(['explain', '/a', '/b', '--url', url])).code, 2);
    const refused = await runHere(['explain', '/a', '--url', url]);
    assert.equal(refused.code, 1);
    assert.match(refused.err, /needs an API key with the scope read/);
    assert.equal((await runHere(['explain', 'a', '--url', url])).code, 1);
  });
});
