import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { test } from 'node:test';
import { httpSource } from '../outbound/sources.ts';
import { serverFolder, startServed } from '../../process.ts';

const rewrites = 20;
const inFlight = 100;
/** The delay of the source: requests are pending while the configuration changes. */
const sourceMs = 400;
const betweenLooksMs = 10;

interface Configuration {
  readonly since: string;
  readonly state: string;
  readonly problems: readonly { readonly line: number; readonly message: string }[];
}

test('no request fails while the ini file is rewritten, broken every fifth time', async (t) => {
  const { origin } = await httpSource(t, (_, response) => {
    void wait(sourceMs).then(() => response.end('from afar'));
  });
  const rule = { path: '/far', kind: 'content.fetch', enginedata: { source: origin } };
  const { iniFile, ini } = await serverFolder(
    t,
    'import = rules.ndjson\n[fetch]\nallow_private = 127.0.0.0/8\ncache = 0\n[log]\naccess = no\n' +
      '[disk.site]\nroot = site\n[disk.site.headers]\nX-Version = 0\n',
    { 'site/page.txt': 'a page', 'rules.ndjson': JSON.stringify(rule) },
  );
  const { url, adminKey } = await startServed(t, iniFile);
  const headers = { apikey: adminKey };
  const configuration = async (): Promise<Configuration> => {
    const reply = await fetch(`${url}/svc1/server/status`, { headers });
    return ((await reply.json()) as { data: { configuration: Configuration } }).data.configuration;
  };
  const page = async (): Promise<string | null> => {
    const reply = await fetch(`${url}/page.txt`);
    assert.deepEqual([reply.status, await reply.text()], [200, 'a page']);
    return reply.headers.get('x-version');
  };

  const stop = new AbortController();
  const isStopped = () => stop.signal.aborted;
  let answered = 0;
  const visit = async (): Promise<void> => {
    while (!isStopped()) {
      const reply = await fetch(`${url}/far`);
      assert.deepEqual([reply.status, await reply.text()], [200, 'from afar']);
      answered += 1;
    }
  };
  const visitors = Array.from({ length: inFlight }, visit);
  visitors.forEach((visitor) => {
    // A failed request ends the loop below as well.
    visitor.catch(() => {
      stop.abort();
    });
  });

  let inForce = '0';
  for (let rewrite = 1; rewrite <= rewrites && !isStopped(); rewrite += 1) {
    const before = await configuration();
    const broken = rewrite % 5 === 0;
    const text = ini.replace('X-Version = 0', `X-Version = ${rewrite}`);
    await writeFile(iniFile, broken ? `${text}[disk.site]\nrot = 1\n` : text);
    const isTaken = (now: Configuration) =>
      broken ? now.state === 'broken' : now.since !== before.since;
    let now = await configuration();
    while (!isTaken(now) && !isStopped()) {
      // The new configuration can come into force between the two requests.
      assert.ok([inForce, String(rewrite)].includes((await page()) ?? ''));
      await wait(betweenLooksMs);
      now = await configuration();
    }
    assert.equal(now.problems.length > 0, broken);
    if (!broken) inForce = String(rewrite);
    assert.equal(await page(), inForce, 'good ones are in force, broken ones are not');
  }
  stop.abort();
  await Promise.all(visitors);
  assert.ok(answered > inFlight);
  const last = await configuration();
  assert.equal(last.state, 'broken');
  assert.match(last.problems[0]?.message ?? '', /disk\.site|rot/);
});
