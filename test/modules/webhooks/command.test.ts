import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { startReceiver } from './receiver.ts';
import { local } from './rig.ts';
import { startClient } from '../../cli/here.ts';

const sales = '{"name":"till","event":"sale.completed","url":"https://shop.example/hook"}';

suite('waymark hook', () => {
  test('inserts a hook, shows its secret once, and edits it', async (t) => {
    const { waymark, out, site } = await startClient(t);
    const inserted = await waymark('hook', 'insert', sales);
    assert.equal(inserted.code, 0, inserted.err);
    assert.match(inserted.err, /shown only once, now/);
    const { id, secret } = JSON.parse(inserted.out) as { id: string; secret: string };
    assert.match(secret, /^whsec_/);
    const again = await waymark('hook', 'insert', sales);
    assert.match(again.err, /not shown again/);
    assert.ok(!again.out.includes('whsec_'));

    await writeFile(
      join(site.folder, 'edit.json'),
      '{"event":["sale.completed","stock.level_changed"]}',
    );
    await out('hook', 'edit', id, `@${join(site.folder, 'edit.json')}`);
    assert.ok(!(await out('hook', 'read', id)).includes('whsec_'));
    const history = (await out('hook', 'history', id)).trim().split('\n');
    assert.deepEqual(
      history.slice(1).map((line) => line.split(/ {2,}/)[2]),
      ['edit', 'insert'],
    );
    const listed = (await out('hook', 'list')).trim().split('\n');
    assert.match(listed[0] ?? '', /^ID +STATE +EVENTS +NEXT BATCH +DELIVERED TO +NAME$/);
    assert.match(
      listed[1] ?? '',
      new RegExp(
        `^${id} +active +sale.completed,stock.level_changed +- +POST https://shop.example/hook +till$`,
      ),
    );
    await out('hook', 'edit', id, '{"frequency":{"mode":"batch","at":["02:00"]}}');
    assert.match(await out('hook', 'list'), /^\S+ +active +\S+ +20\S+T02:00:00\.000Z +POST/m);
    assert.equal(
      (await out('hook', 'list', '--event', 'email.requested')).trim().split('\n').length,
      1,
    );
  });

  test('pauses and resumes, rotates the secret, and invalidates in two steps', async (t) => {
    const { waymark, out } = await startClient(t);
    const { id, secret } = JSON.parse(await out('hook', 'insert', sales)) as Record<string, string>;
    assert.ok(id !== undefined);
    await out('hook', 'pause', id);
    assert.match(await out('hook', 'list'), new RegExp(`^${id} +paused `, 'm'));
    await out('hook', 'resume', id);
    assert.match(await out('hook', 'list'), new RegExp(`^${id} +active `, 'm'));

    const rotated = await waymark('hook', 'rotate', id);
    assert.match(rotated.out, /^whsec_[A-Za-z0-9+/]{43}=\n$/);
    assert.notEqual(rotated.out.trim(), secret);
    assert.match(rotated.err, /also signs until 20/);

    const dry = await out('hook', 'invalidate', id);
    assert.match(dry, /^Nothing has changed yet\. .* of 1 hook\./);
    const [, digest = ''] = /--confirm ([0-9a-f]{64})/.exec(dry) ?? [];
    assert.match(
      await out('hook', 'invalidate', id, '--confirm', digest),
      /waymark hook invalidate --txn/,
    );
    const gone = await waymark('hook', 'read', id);
    assert.equal(gone.code, 1);
    assert.match(gone.err, /^waymark: There is no hook/);
  });

  test('tests a hook, and lists its deliveries', async (t) => {
    const { waymark, out } = await startClient(t, { ini: local.replace('1ms', '1h') });
    const receiver = await startReceiver(t);
    const insert = JSON.stringify({ event: 'sale.completed', url: receiver.url });
    const { id } = JSON.parse(await out('hook', 'insert', insert)) as { id: string };
    receiver.answer = () => (response) => response.writeHead(200).end('thank\x1b[31m you\n');
    const tried = await waymark('hook', 'test', id);
    assert.equal(tried.code, 0, tried.err);
    assert.match(tried.out, /^completed after \d+ ms: status 200\nthank \[31m you\n$/);
    receiver.answer = () => 500;
    const failed = await waymark('hook', 'test', id);
    assert.equal(failed.code, 1);
    assert.match(failed.out, /^failed after \d+ ms: status 500\n/);

    const shown = await waymark('hook', 'deliveries', id);
    assert.equal(shown.code, 0, shown.err);
    const [heading = '', second = '', first = ''] = shown.out.trim().split('\n');
    assert.match(heading, /^SEQ +ATTEMPT +AT +OUTCOME +STATUS +MS +ID +ANSWER$/);
    assert.match(second, /^2 +1 +20\S+ +failed +500 +\d+ +[0-9a-f-]{36}/);
    assert.match(first, /^1 +1 +20\S+ +completed +200 +\d+ +[0-9a-f-]{36} +thank \[31m you$/);
    assert.match(shown.err, /^0 messages without an attempt, 1 waiting for the next attempt\.\n$/);
    const only = await out('hook', 'deliveries', id, '--outcome', 'completed');
    assert.equal(only.trim().split('\n').length, 2);
    const more = await waymark('hook', 'deliveries', id, '--limit', '1');
    assert.match(more.err, /For more: --before 2/);
  });

  test('replays one message, those of a period, and those that were given up', async (t) => {
    const { site, waymark, out } = await startClient(t, { ini: local });
    const receiver = await startReceiver(t);
    receiver.answer = ({ body }) => (body.seq === 2 && receiver.got.length < 4 ? 500 : 200);
    const hook = { event: 'sale.completed', url: receiver.url, retry_limit: 1 };
    const { id } = (await site.call('svc1.webhook.insert', hook)).data;
    for (let n = 0; n < 3; n += 1)
      await out('event', 'insert', 'sale.completed', '--vk', `sale ${n}`);
    await receiver.until(3);
    while (!(await out('hook', 'deliveries', id)).includes(' exhausted ')) await nextTurn();
    const cases: readonly (readonly [readonly string[], readonly number[], string])[] = [
      [['--failed', '--vk', 'again'], [2], 'One message will be sent again.\n'],
      [['--failed', '--vk', 'again'], [], 'One message will be sent again.\n'],
      [['--delivery', '1'], [1], 'One message will be sent again.\n'],
      [
        ['--since', '2000-01-01T00:00:00Z', '--until', '2100-01-01T00:00:00Z'],
        [1, 2, 3],
        '3 messages will be sent again.\n',
      ],
      [['--failed'], [], '0 messages will be sent again.\n'],
    ];
    for (const [words, seqs, says] of cases) {
      const before = receiver.got.length;
      const { code, err } = await waymark('hook', 'replay', id, ...words);
      assert.deepEqual([code, err], [0, says], words.join(' '));
      const got = (await receiver.until(before + seqs.length)).slice(before);
      assert.deepEqual(got.map(({ body }) => body.seq as number).toSorted(), seqs);
    }
  });

  test('lists a batch with the range of its events, and finds the test in it', async (t) => {
    const { site, waymark, out } = await startClient(t, { ini: local });
    const receiver = await startReceiver(t);
    const frequency = { mode: 'batch', every: '1d' };
    const hook = { event: 'sale.completed', url: receiver.url, frequency };
    const { id } = (await site.call('svc1.webhook.insert', hook)).data;
    for (let n = 0; n < 2; n += 1)
      await out('event', 'insert', 'sale.completed', '--vk', `sale ${n}`);
    const tried = await waymark('hook', 'test', id);
    assert.equal(tried.code, 0, tried.err);
    assert.match(tried.out, /^completed after \d+ ms: status 200/);
    const [, first = ''] = (await out('hook', 'deliveries', id)).split('\n');
    assert.match(first, new RegExp(`^1-3 +1 +20\\S+ +completed +200 +\\d+ +${id}-1-3$`));
  });

  test('reports mistakes of the command line and of the input', async (t) => {
    const { waymark } = await startClient(t);
    const cases: readonly (readonly [readonly string[], number, RegExp])[] = [
      [[], 2, /name a subcommand: list, read, .* resume\b/],
      [['relay'], 2, /unknown command 'relay'\. Did you mean replay\?/],
      [['read'], 2, /missing required argument 'id'/],
      [['insert'], 2, /missing required argument 'fields'/],
      [['insert', '{'], 2, /is not JSON/],
      [['insert', '[]'], 2, /must be a JSON object/],
      [['insert', '@/nowhere/at/all'], 2, /cannot read .*ENOENT/],
      [['insert', '{"event":"sale.completed"}'], 1, /url/],
      [['insert', '{"event":"Sale","url":"https://a.example"}'], 1, /event types such as/],
      [['read', 'x', '--txn', 'y'], 2, /unknown option '--txn'/],
      [['read', 'x', '--vk', 'y'], 2, /unknown option '--vk'/],
      [['pause', 'x', 'y'], 2, /too many arguments for 'pause'/],
      [['pause', 'x'], 1, /There is no hook/],
      [['test', 'x'], 1, /There is no hook/],
      [['deliveries', 'x'], 1, /There is no hook/],
      [['deliveries', 'x', '--outcome', 'exausted'], 2, /Did you mean exhausted\?/],
      [['replay'], 2, /missing required argument 'id'/],
      [['replay', 'x', '--failed'], 1, /There is no hook/],
    ];
    for (const [words, code, says] of cases) {
      const finished = await waymark('hook', ...words);
      assert.equal(finished.code, code, `${words.join(' ')}: ${finished.err}`);
      assert.match(finished.err, says);
      assert.equal(finished.out, '');
    }
  });
});
