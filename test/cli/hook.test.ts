import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { runWaymark, serverFolder, startServed } from '../process.ts';
import { startReceiver } from '../webhook/receiver.ts';

async function running(t: TestContext, ini = '') {
  const { iniFile, folder } = await serverFolder(t, ini);
  const { url, adminKey } = await startServed(t, iniFile);
  const env = { WAYMARK_URL: url, WAYMARK_APIKEY: adminKey };
  const waymark = (...words: string[]) => runWaymark(words, { env });
  /** Standard output of a command that has to succeed. */
  const out = async (...words: string[]): Promise<string> => {
    const finished = await waymark(...words);
    assert.equal(finished.code, 0, finished.err);
    return finished.out;
  };
  return { folder, env, waymark, out };
}

const sales = '{"name":"till","event":"sale.completed","url":"https://shop.example/hook"}';

suite('waymark hook', () => {
  test('registers, shows the secret once, and changes what is registered', async (t) => {
    const { waymark, out, folder } = await running(t);
    const inserted = await waymark('hook', 'insert', sales);
    assert.equal(inserted.code, 0, inserted.err);
    assert.match(inserted.err, /shown only this once/);
    const { id, secret } = JSON.parse(inserted.out) as { id: string; secret: string };
    assert.match(secret, /^whsec_/);
    const again = await waymark('hook', 'insert', sales);
    assert.match(again.err, /not again/);
    assert.ok(!again.out.includes('whsec_'));

    await writeFile(
      join(folder, 'edit.json'),
      '{"event":["sale.completed","stock.level_changed"]}',
    );
    await out('hook', 'edit', id, `@${join(folder, 'edit.json')}`);
    assert.ok(!(await out('hook', 'read', id)).includes('whsec_'));
    const history = (await out('hook', 'history', id)).trim().split('\n');
    assert.deepEqual(
      history.map((line) => line.split('\t')[2]),
      ['edit', 'insert'],
    );
    const listed = (await out('hook', 'list')).trim().split('\n');
    assert.match(listed[0] ?? '', /^ID +STATE +EVENTS +DELIVERED TO +NAME$/);
    assert.match(
      listed[1] ?? '',
      new RegExp(
        `^${id} +active +sale.completed,stock.level_changed +POST https://shop.example/hook +till$`,
      ),
    );
    assert.equal(
      (await out('hook', 'list', '--event', 'email.requested')).trim().split('\n').length,
      1,
    );
  });

  test('pauses and resumes, rotates the secret, and invalidates in two steps', async (t) => {
    const { waymark, out } = await running(t);
    const { id, secret } = JSON.parse(await out('hook', 'insert', sales)) as Record<string, string>;
    assert.ok(id !== undefined);
    await out('hook', 'pause', id);
    assert.match(await out('hook', 'list'), new RegExp(`^${id} +paused `, 'm'));
    await out('hook', 'resume', id);
    assert.match(await out('hook', 'list'), new RegExp(`^${id} +active `, 'm'));

    const rotated = await waymark('hook', 'rotate', id);
    assert.match(rotated.out, /^whsec_[A-Za-z0-9+/]{43}=\n$/);
    assert.notEqual(rotated.out.trim(), secret);
    assert.match(rotated.err, /signs too until 20/);

    const dry = await out('hook', 'invalidate', id);
    assert.match(dry, /^Nothing is done yet\. .* of 1 hooks/);
    const [, digest = ''] = /--confirm ([0-9a-f]{64})/.exec(dry) ?? [];
    assert.match(
      await out('hook', 'invalidate', id, '--confirm', digest),
      /waymark hook invalidate --txn/,
    );
    const gone = await waymark('hook', 'read', id);
    assert.equal(gone.code, 1);
    assert.match(gone.err, /^waymark: There is no hook/);
  });

  test('is tried out, and shows what became of its messages', async (t) => {
    const { waymark, out } = await running(t, '[webhook]\nallow_private = 127.0.0.0/8\n');
    const receiver = await startReceiver(t);
    const insert = JSON.stringify({ event: 'sale.completed', url: receiver.url });
    const { id } = JSON.parse(await out('hook', 'insert', insert)) as { id: string };
    receiver.answer = () => (response) => response.writeHead(200).end('thank\x1b[31m you\n');
    const tried = await waymark('hook', 'test', id);
    assert.equal(tried.code, 0, tried.err);
    assert.match(tried.out, /^completed: status 200 after \d+ ms\nthank \[31m you\n$/);
    receiver.answer = () => 500;
    const failed = await waymark('hook', 'test', id);
    assert.equal(failed.code, 1);
    assert.match(failed.out, /^failed: status 500 after/);

    const shown = await waymark('hook', 'deliveries', id);
    assert.equal(shown.code, 0, shown.err);
    const [heading = '', second = '', first = ''] = shown.out.trim().split('\n');
    assert.match(heading, /^SEQ +ATTEMPT +AT +OUTCOME +STATUS +MS +ID +WHAT CAME BACK$/);
    assert.match(second, /^2 +1 +20\S+ +failed +500 +\d+ +[0-9a-f-]{36}/);
    assert.match(first, /^1 +1 +20\S+ +completed +200 +\d+ +[0-9a-f-]{36} +thank \[31m you$/);
    assert.match(shown.err, /^0 not tried yet, 1 waiting for another attempt\.\n$/);
    const only = await out('hook', 'deliveries', id, '--outcome', 'completed');
    assert.equal(only.trim().split('\n').length, 2);
    const more = await waymark('hook', 'deliveries', id, '--limit', '1');
    assert.match(more.err, /There are more: --before 2/);
  });

  test('says clearly what is wrong', async (t) => {
    const { waymark } = await running(t);
    const cases: readonly (readonly [readonly string[], number, RegExp])[] = [
      [[], 2, /list, read, insert, .* or deliveries\?/],
      [['fly'], 2, /deliveries\?/],
      [['read'], 2, /Which hook\? Give its id\./],
      [['insert'], 2, /Give the fields as JSON/],
      [['insert', '{'], 2, /is not JSON/],
      [['insert', '[]'], 2, /has to be a JSON object/],
      [['insert', '@/nowhere/at/all'], 2, /Cannot read .*ENOENT/],
      [['insert', '{"event":"sale.completed"}'], 1, /url/],
      [['insert', '{"event":"Sale","url":"https://a.example"}'], 1, /event types such as/],
      [['read', 'x', '--txn', 'y'], 2, /hook read takes no --txn/],
      [['read', 'x', '--vk', 'y'], 2, /hook read takes no --vk/],
      [['pause', 'x', 'y'], 2, /What is "y"\?/],
      [['pause', 'x'], 1, /There is no hook/],
      [['test', 'x'], 1, /There is no hook/],
      [['deliveries', 'x'], 1, /There is no hook/],
      [['deliveries', 'x', '--outcome', 'lost'], 1, /outcome/],
    ];
    for (const [words, code, says] of cases) {
      const finished = await waymark('hook', ...words);
      assert.equal(finished.code, code, `${words.join(' ')}: ${finished.err}`);
      assert.match(finished.err, says);
      assert.equal(finished.out, '');
    }
  });
});

suite('waymark event', () => {
  test('tells what has happened, once by its vk, and shows what was told', async (t) => {
    const { waymark, out, env } = await running(t);
    await out('hook', 'insert', sales);
    const sale = ['event', 'insert', 'sale.completed', '--data', '{"id":"S-1","total":"9.90"}'];
    const first = await waymark(...sale, '--vk', 'sale-1', '--counter', 'counter-2');
    assert.equal(first.code, 0, first.err);
    assert.match(first.out, /^[0-9a-f-]{36}\n$/);
    assert.match(first.err, /one hook gets it/);
    const again = await out(...sale, '--vk', 'sale-1', '--counter', 'counter-2');
    assert.equal(again, first.out);

    const piped = await runWaymark(['event', 'insert', 'till.opened', '--data', '-'], {
      env,
      input: '{"till":3}',
    });
    assert.equal(piped.code, 0, piped.err);

    const listed = (await out('event', 'list', '--type', 'sale.completed')).trim().split('\n');
    assert.equal(listed.length, 2);
    assert.match(listed[0] ?? '', /^SEQ +OCCURRED +TYPE +COUNTER +ID +DATA$/);
    assert.match(
      listed[1] ?? '',
      / sale\.completed +counter-2 +\S+ +\{"id":"S-1","total":"9\.90"\}$/,
    );
    const json = JSON.parse(await out('event', 'list', '--limit', '1', '--json')) as {
      data: { rows: unknown[] };
    };
    assert.equal(json.data.rows.length, 1);
  });

  test('takes data that is not as its type has it, and says so', async (t) => {
    const { waymark } = await running(t);
    const told = await waymark('event', 'insert', 'stock.level_changed', '--data', '{"level":"3"}');
    assert.equal(told.code, 0, told.err);
    assert.match(told.err, /0 hooks get it/);
    assert.match(told.err, /Not as stock\.level_changed has it: .*product/);
  });

  test('lists what it knows', async (t) => {
    const { out } = await running(t);
    const types = await out('event', 'types');
    assert.match(types, /^sale\.completed\n {4}A sale has been completed\.\n {4}for example \{/);
    assert.match(types, /^webhook\.test$/m);
  });

  test('says clearly what is wrong', async (t) => {
    const { waymark } = await running(t);
    const cases: readonly (readonly [readonly string[], number, RegExp])[] = [
      [[], 2, /insert, list or types\?/],
      [['insert'], 2, /Which type\?/],
      [['insert', 'Sale'], 1, /dotted name in lower case/],
      [['insert', 'a.b', '--data', '{'], 2, /--data is not JSON/],
      [['insert', 'a.b', '--occurred-at', 'noon'], 1, /occurred_at/],
      [['list', '--limit', 'many'], 2, /--limit has to be a whole number/],
      [['list', '--vk', 'x'], 2, /takes no --vk/],
    ];
    for (const [words, code, says] of cases) {
      const finished = await waymark('event', ...words);
      assert.equal(finished.code, code, `${words.join(' ')}: ${finished.err}`);
      assert.match(finished.err, says);
    }
  });
});
