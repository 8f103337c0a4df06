import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { newId, now } from '../../../src/core/values/clock.ts';
import { postOperation } from '../../harness.ts';
import { runWaymark, serverFolder, startServed } from '../../process.ts';

/** Code that sets every Date of a process to one moment. */
function clockAt(text: string): NodeJS.ProcessEnv {
  const script = `
    const System = Date;
    const at = System.parse(${JSON.stringify(text)});
    globalThis.Date = class extends System {
      constructor(...given) { super(...(given.length === 0 ? [at] : given)); }
      static now() { return at; }
    };`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` };
}

suite('the time of the system', () => {
  for (const [clock, ms, id] of [
    ['-000001-06-01T00:00:00Z', 0, '00000000-0000-7'],
    ['1969-12-31T23:59:59.999Z', 0, '00000000-0000-7'],
    ['2026-11-23T12:00:00.000Z', Date.UTC(2026, 10, 23, 12), '01a20846-fe00-7'],
    ['+010000-01-01T00:00:00Z', Date.UTC(9999, 11, 1), 'e677327a-b800-7'],
  ] as const) {
    test(`at ${clock} has a year of four digits, and ids`, (t) => {
      t.mock.method(Date, 'now', () => Date.parse(clock));
      assert.equal(now(), ms);
      assert.match(new Date(now()).toISOString(), /^\d{4}-/);
      assert.ok(newId().startsWith(id), newId());
    });
  }

  for (const clock of ['1969-01-01T00:00:00Z', '+012345-01-01T00:00:00Z']) {
    test(`of ${clock}: a server starts and stores, and its data passes \`check --data\``, async (t) => {
      const { iniFile } = await serverFolder(t, '');
      const env = clockAt(clock);
      const { url, adminKey: apikey, child, closed } = await startServed(t, iniFile, { env });
      const v = { path: '/a', kind: 'content', content: 'x' };
      const insert = () => postOperation(url, 'svc1.userinterface.insert', v, { apikey });
      assert.equal((await insert()).status, 200);
      assert.equal((await fetch(`${url}/a`)).status, 200);
      child.kill('SIGTERM');
      assert.equal((await closed).code, 0);
      const input = `${JSON.stringify({ path: '/b', kind: 'content', content: 'x' })}\n`;
      const imported = await runWaymark(['import', '--config', iniFile], { env, input });
      assert.equal(imported.code, 0, imported.err);
      const checked = await runWaymark(['check', '--data', '--config', iniFile]);
      assert.equal(checked.code, 0, checked.err);
    });
  }
});
