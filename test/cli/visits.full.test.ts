import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { test } from 'node:test';
import { request } from 'node:http';
import { once } from 'node:events';
import { postOperation } from '../harness.ts';
import { runWaymark, serverFolder, startServed, type Served } from '../process.ts';

const rules = {
  'rules.ndjson':
    '{"path":"k","kind":"resolve","enginedata":{"target":"/"}}\n' +
    '{"path":"/page","kind":"content","content":"x","contenttype":"text/html"}\n',
};

/** Requests a path over a connection of its own, which any worker may take. */
async function open({ url }: Served, path: string): Promise<void> {
  const agentName = 'Mozilla/5.0 (X11; Linux x64; rv:140.0) Gecko Firefox/140.0';
  const headers = { 'user-agent': agentName, accept: 'text/html' };
  const sent = request(url + path, { agent: false, headers }).end();
  const [answer] = (await once(sent, 'response')) as [NodeJS.ReadableStream];
  answer.resume();
  await once(answer, 'end');
}

async function visits({ url }: Served, apikey: string): Promise<number> {
  const { data } = await postOperation(url, 'svc1.breadcrumb.visits', { k: 'k' }, { apikey });
  return data.visits as number;
}

async function pageVisits({ url }: Served, apikey: string): Promise<number> {
  const { data } = await postOperation(url, 'svc1.visit.summary', { path: '/page' }, { apikey });
  return data.visits as number;
}

test('visits of all workers add up, and written ones survive a SIGKILL', async (t) => {
  const ini = 'import = rules.ndjson\nworkers = 2\n';
  const { iniFile } = await serverFolder(t, ini, rules);
  const first = await startServed(t, iniFile);
  const key = first.adminKey;
  const link = '/svc1/userinterface.link.htm?k=k';
  await Promise.all(Array.from({ length: 20 }, () => open(first, link)));
  await Promise.all(Array.from({ length: 20 }, () => open(first, '/page')));
  // A worker writes its own counts after a few seconds.
  while ((await visits(first, key)) < 20) await wait(100);
  assert.equal(await visits(first, key), 20);
  while ((await pageVisits(first, key)) < 20) await wait(100);
  assert.equal(await pageVisits(first, key), 20);
  const command = ['breadcrumb', 'visits', '--url', first.url, '--apikey', key];
  const [all, one] = await Promise.all([
    runWaymark(command),
    runWaymark([...command.slice(0, 2), 'k', ...command.slice(2)]),
  ]);
  assert.match(all.out, /^VISITS +ROBOTS +ORIGIN +KEY\n20 +0 +\* +k\n$/);
  assert.match(one.out, /^branch +default +20$/m);
  assert.match(one.err, /: 20 visits, and 0 of robots\.$/m);
  const pages = await runWaymark(['visits', '--url', first.url, '--apikey', key]);
  assert.equal(pages.code, 0, pages.err);
  assert.match(pages.out, /^page +http:\S+\/page +20$/m);
  assert.match(pages.out, /^SOURCE +ANSWERS +FAILED +SLOW$/m);
  first.child.kill('SIGKILL');
  await first.closed;
  const second = await startServed(t, iniFile, { first: false });
  assert.equal(await visits(second, key), 20);
  assert.equal(await pageVisits(second, key), 20);
});
