import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { postOperation } from '../../harness.ts';
import { serverFolder, startServed } from '../../process.ts';

const inFlightMax = 64;
const insertsMax = 3_000;

/** Inserts pages, some at a time, until the connection ends; resolves to the acknowledged ids. */
async function insertUntilCut(
  url: string,
  apikey: string,
  acknowledged: (count: number) => void,
): Promise<ReadonlyMap<string, string>> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/svc1/ws`, { headers: { apikey } });
  const ids = new Map<string, string>();
  let next = 0;
  const insert = (): void => {
    if (next === insertsMax) return;
    next += 1;
    const v = { path: `/page/${next}`, kind: 'content', content: `page ${next}` };
    socket.send(JSON.stringify({ a: 'svc1.userinterface.insert', v, id: next }));
  };
  socket.on('open', () => {
    for (let count = 0; count < inFlightMax; count += 1) insert();
  });
  socket.on('message', (data: Buffer) => {
    const { data: record } = JSON.parse(data.toString()) as { data: { id: string; path: string } };
    ids.set(record.id, record.path);
    acknowledged(ids.size);
    insert();
    if (ids.size === insertsMax) socket.close();
  });
  // The server is killed: the connection is expected to break.
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('close', resolve));
  return ids;
}

/** All page rules of a server: paths by id. */
async function pathsById(url: string, apikey: string): Promise<ReadonlyMap<string, string>> {
  const paths = new Map<string, string>();
  let after: string | null = '';
  while (after !== null) {
    const v: object = { limit: 1_000, ...(after !== '' && { after }) };
    const { data } = await postOperation(url, 'svc1.userinterface.list', v, { apikey });
    for (const { id, path } of data.rows as { id: string; path: string }[]) paths.set(id, path);
    after = data.next as string | null;
  }
  return paths;
}

for (const [title, share] of [
  ['early', 0.02],
  ['in the middle', 0.2 + Math.random() * 0.6],
  ['after the last insert', 1],
] as const) {
  test(`every acknowledged insert survives a SIGKILL ${title}`, async (t) => {
    const { iniFile } = await serverFolder(t, '[log]\naccess = no\n');
    const served = await startServed(t, iniFile);
    const killAt = Math.round(insertsMax * share);
    const ids = await insertUntilCut(served.url, served.adminKey, (count) => {
      if (count === killAt) served.child.kill('SIGKILL');
    });
    await served.closed;
    assert.ok(ids.size >= killAt);

    const again = await startServed(t, iniFile, { first: false });
    const there = await pathsById(again.url, served.adminKey);
    const missing = [...ids].filter(([id, path]) => there.get(id) !== path);
    assert.deepEqual(missing, []);
    const [, lastPath = ''] = [...ids].at(-1) ?? [];
    const page = await fetch(again.url + lastPath);
    assert.equal(await page.text(), `page ${lastPath.slice('/page/'.length)}`);
  });
}
