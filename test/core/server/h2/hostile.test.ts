import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { headerFieldsMax } from '../../../../src/core/http/limits.ts';
import { rangesMax } from '../../../../src/core/http/representation/ranges.ts';
import type { LimitName } from '../../../../src/core/values/limit.ts';
import { startTlsSite } from '../tls/tls-rig.ts';
import { type Http2Client, connectHttp2, readReply } from './client.ts';

const files = { 'site/page.txt': 'x'.repeat(1_000) };
const ini = '[disk.site]\nroot = site\n[log]\nformat = json\n';

const get = '/svc1/userinterface/get';
const post = { ':method': 'POST', 'content-type': 'application/json' };

/** Sends a hostile request; resolves to the actual and the expected status. */
type Attack = (client: Http2Client) => Promise<readonly [got: unknown, expected: number]>;

const attacks: Readonly<Partial<Record<LimitName, Attack>>> = {
  target_size: async (client) => {
    const { status } = await client.ask(`/?${'x'.repeat(9_000)}`);
    return [status, 414];
  },
  header_size: async (client) => {
    const many = Array.from({ length: headerFieldsMax }, (_, at) => [`x-${at}`, 'y'] as const);
    const { status } = await client.ask('/page.txt', Object.fromEntries(many));
    return [status, 431];
  },
  ranges: async (client) => {
    const list = Array.from({ length: 2_000 }, (_, at) => `${at}-${at}`);
    const some = await client.ask('/page.txt', {
      range: `bytes=${list.slice(0, rangesMax).join()}`,
    });
    assert.equal(some.status, 206);
    const { status, body } = await client.ask('/page.txt', { range: `bytes=${list.join()}` });
    assert.equal(body.length, 1_000);
    return [status, 200];
  },
  content_size: async (client) => {
    const stream = client.begin(get, post, false);
    const reply = readReply(stream);
    // The server stops reading content that no handler reads.
    stream.on('error', () => undefined).write(Buffer.alloc(1 << 20, ' '));
    const { status } = await reply;
    return [status, 413];
  },
  content_coding: async (client) => {
    const bomb = gzipSync(Buffer.alloc(16 << 20));
    const { status } = await client.ask(get, { ...post, 'content-encoding': 'gzip' }, bomb);
    return [status, 415];
  },
};

suite('a hostile client of HTTP/2', () => {
  for (const [limit, attack] of Object.entries(attacks)) {
    test(`meets the limit ${limit}, has one line in the log, and disturbs no other client`, async (t) => {
      const site = await startTlsSite(t, { files, ini });
      const client = await connectHttp2(t, site);
      for (let time = 0; time < 2; time += 1) {
        const [got, expected] = await attack(client);
        assert.equal(got, expected);
      }
      assert.equal((await client.ask('/page.txt')).status, 200);
      const lines = site
        .logged()
        .split('\n')
        .filter((line) => line.includes('"limit":'));
      assert.equal(lines.length, 1, lines.join('\n'));
      const { limit: name, address } = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
      assert.deepEqual([name, address], [limit, '127.0.0.1']);
    });
  }
});
