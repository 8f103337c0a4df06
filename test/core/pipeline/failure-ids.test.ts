import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../../harness.ts';

suite('the id of a failure', () => {
  test('is in its line of the access log, and in a debug line with the reason', async (t) => {
    for (const format of ['json', 'pretty']) {
      const ini = `[log]\nlevel = debug\nformat = ${format}\n`;
      const site = await startSite(t, { ini });
      const { error } = await site.call('svc1.userinterface.read', {});
      const page = await (await fetch(`${site.url}/none`)).text();
      const person = await fetch(`${site.url}/none`, { headers: { accept: 'text/html' } });
      const unread = await site.raw('GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      const { error: sent } = await (await site.socket()).call('svc1.x.y', {});
      const ids = [page, await person.text(), unread].map((text) => uuid.exec(text)?.[0]);
      const logged = site.logged().split('\n');
      for (const id of [error?.id, ...ids]) {
        assert.ok(id !== undefined);
        const lines = logged.filter((line) => line.includes(id));
        assert.equal(lines.length, 2, `${format} ${id}: ${lines.join('\n')}`);
        assert.equal(lines.filter((line) => /(?:GET|POST)/.test(line)).length, 1);
      }
      const [line = '', ...others] = logged.filter((one) => one.includes(sent?.id ?? '-'));
      assert.equal(others.length, 0, 'a message of a websocket has no line in the access log');
      assert.match(line, /There is no operation/);
    }
  });

  test('of a message that needs no key is in no other line', async (t) => {
    const site = await startSite(t);
    const { error } = await (await site.socket()).call('svc1.x.y', {});
    assert.ok(error !== undefined && !site.logged().includes(error.id));
  });
});

const uuid = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
