import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { runWaymark } from '../../process.ts';
import { startClient } from '../../cli/here.ts';

suite('waymark event', () => {
  test('inserts an event once for its vk, and prints it', async (t) => {
    const { site, waymark, out, env } = await startClient(t);
    const hook = { event: 'sale.completed', url: 'https://shop.example/hook' };
    await site.call('svc1.webhook.insert', hook);
    const sale = ['event', 'insert', 'sale.completed', '--data', '{"id":"S-1","total":"9.90"}'];
    const first = await waymark(...sale, '--vk', 'sale-1', '--counter', 'counter-2');
    assert.equal(first.code, 0, first.err);
    assert.match(first.out, /^[0-9a-f-]{36}\n$/);
    assert.match(first.err, /one hook gets it/);
    const again = await out(...sale, '--vk', 'sale-1', '--counter', 'counter-2');
    assert.equal(again, first.out);
    const read = await out('event', 'read', first.out.trim());
    assert.match(read, /"type": "sale.completed"/);

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

  test('inserts data that does not match the schema of its type, with a warning', async (t) => {
    const { waymark } = await startClient(t);
    const told = await waymark('event', 'insert', 'stock.level_changed', '--data', '{"level":"3"}');
    assert.equal(told.code, 0, told.err);
    assert.match(told.err, /0 hooks get it/);
    assert.match(told.err, /do not match the schema of stock\.level_changed: .*product/);
  });

  test('lists events and their types', async (t) => {
    const { out } = await startClient(t);
    const types = await out('event', 'types');
    assert.match(types, /^sale\.completed\n {4}A sale has been completed\.\n {4}for example \{/);
    assert.match(types, /^webhook\.test$/m);
  });

  test('reports mistakes of the command line and of the input', async (t) => {
    const { waymark } = await startClient(t);
    const cases: readonly (readonly [readonly string[], number, RegExp])[] = [
      [[], 2, /name a subcommand: insert, read, list, types\./],
      [['insert'], 2, /missing required argument 'type'/],
      [['insert', 'Sale'], 1, /dotted name in lower case/],
      [['insert', 'a.b', '--data', '{'], 2, /--data is not JSON/],
      [['insert', 'a.b', '--occurred-at', 'noon'], 1, /occurred_at/],
      [['list', '--limit', 'many'], 2, /'many' is invalid\. Write a whole number/],
      [['list', '--vk', 'x'], 2, /unknown option '--vk'/],
    ];
    for (const [words, code, says] of cases) {
      const finished = await waymark('event', ...words);
      assert.equal(finished.code, code, `${words.join(' ')}: ${finished.err}`);
      assert.match(finished.err, says);
    }
  });
});
