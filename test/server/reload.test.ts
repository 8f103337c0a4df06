import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { serverFolder, startServed } from '../process.ts';

const rewrites = 25;
const inFlight = 200;

interface Configuration {
  readonly since: string;
  readonly state: string;
  readonly problems: readonly { readonly line: number; readonly message: string }[];
}

test('no request fails while the ini file is rewritten, broken every fifth time', async (t) => {
  const { iniFile, ini } = await serverFolder(
    t,
    '[log]\naccess = no\n[disk.site]\nroot = site\n[disk.site.headers]\nX-Version = 0\n',
    { 'site/page.txt': 'a page' },
  );
  const { url, adminKey } = await startServed(t, iniFile);
  const headers = { apikey: adminKey };
  const configuration = async (): Promise<Configuration> => {
    const reply = await fetch(`${url}/svc1/server/status`, { headers });
    return ((await reply.json()) as { data: { configuration: Configuration } }).data.configuration;
  };

  const stop = new AbortController();
  const isStopped = () => stop.signal.aborted;
  let answered = 0;
  const versions = new Set<string>();
  const visit = async (): Promise<void> => {
    while (!isStopped()) {
      const reply = await fetch(`${url}/page.txt`);
      assert.equal(reply.status, 200);
      assert.equal(await reply.text(), 'a page');
      versions.add(reply.headers.get('x-version') ?? '');
      answered += 1;
    }
  };
  const visitors = Array.from({ length: inFlight }, visit);
  visitors.forEach((visitor) => {
    // A failed request ends the loop below too.
    visitor.catch(() => {
      stop.abort();
    });
  });

  for (let rewrite = 1; rewrite <= rewrites && !isStopped(); rewrite += 1) {
    const before = await configuration();
    const broken = rewrite % 5 === 0;
    const text = ini.replace('X-Version = 0', `X-Version = ${rewrite}`);
    await writeFile(iniFile, broken ? `${text}[disk.site]\nrot = 1\n` : text);
    const isTaken = (now: Configuration) =>
      broken ? now.state === 'broken' : now.since !== before.since;
    let now = await configuration();
    while (!isTaken(now) && !isStopped()) now = await configuration();
    assert.equal(now.problems.length > 0, broken);
  }
  stop.abort();
  await Promise.all(visitors);
  assert.ok(answered > rewrites);
  assert.ok(
    versions.has('24') && !versions.has('25'),
    'good ones are in force, broken ones are not',
  );
  const last = await configuration();
  assert.equal(last.state, 'broken');
  assert.match(last.problems[0]?.message ?? '', /disk\.site|rot/);
});
