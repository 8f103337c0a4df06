import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { startSite, type TestSite } from '../../harness.ts';
import { toolClient } from './client.ts';

const bin = fileURLToPath(new URL('../../../bin/waymark.js', import.meta.url));

/** The transport to a `waymark mcp` of its own process. */
function command(site: TestSite, apikey: string, ...args: readonly string[]) {
  return new StdioClientTransport({
    command: process.execPath,
    args: [bin, 'mcp', '--url', site.url, ...args],
    env: { ...process.env, WAYMARK_APIKEY: apikey },
    stderr: 'pipe',
  });
}

test('a tool behind `waymark mcp` can only draft by default, and the history names it', async (t) => {
  const site = await startSite(t);
  const client = new Client({ name: 'test-client', version: '1.0' });
  await client.connect(command(site, site.adminKey));
  t.after(() => client.close());
  const { tool } = toolClient(client);
  const v = { path: '/x', content: 'x' };
  assert.equal((await tool('userinterface_insert', { v })).error?.code, 'forbidden');
  await tool('draft_insert', { v: { name: 'spring' } });
  const drafted = await tool('userinterface_insert', { v, draft: 'spring' });
  assert.equal(drafted.isError, false);
  const { id } = drafted.data;
  const { data } = await site.call(
    'svc1.userinterface.read',
    { id },
    { qk: 'history', draft: 'spring' },
  );
  const { via } = data.rows[0];
  assert.deepEqual([via.client, via.tool], ['test-client/1.0', 'userinterface_insert']);
  assert.match(via.conversation, /^[\da-f-]{36}$/);
});

test('`waymark mcp --scope key` lets a tool do what its key may; a wrong key is named', async (t) => {
  const site = await startSite(t);
  const client = new Client(
    { name: 'test-client', version: '1.0' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(command(site, site.adminKey, '--scope', 'key'));
  t.after(() => client.close());
  const { tool } = toolClient(client);
  const v = { path: '/x', content: 'x' };
  assert.equal((await tool('userinterface_insert', { v })).isError, false);
  assert.equal((await fetch(`${site.url}/x`)).status, 200);

  const other = new Client({ name: 'test-client', version: '1.0' });
  await assert.rejects(other.connect(command(site, 'wmk_wrong')), /API key/);
});
