import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import { type TestSite, readTestConfig, startSite } from '../../harness.ts';
import type { Document } from '../docs/documents.ts';
import { eventually, startFollower } from '../nodes/rig.ts';
import { transports } from '../status/transports.ts';

const url = 'https://shop.example/hooks';

const schema = {
  title: 'Shipment',
  type: 'object',
  required: ['order', 'parcels'],
  properties: {
    order: { type: 'string', maxLength: 20 },
    parcels: { type: 'integer', minimum: 1 },
    to: { type: 'object', properties: { country: { type: 'string', maxLength: 2 } } },
  },
  additionalProperties: false,
};

const ini = '[event.order.shipped]\nschema = events/shipped.json\nsummary = An order has left.\n';
const files = { 'events/shipped.json': JSON.stringify(schema) };
const type = 'order.shipped';

const siteWithType = (t: TestContext): Promise<TestSite> => startSite(t, { ini, files });

for (const [transport, open] of Object.entries(transports)) {
  suite(`an event type of the ini file, over ${transport}`, () => {
    test('refuses data that breaks its schema, by name, and takes what fits', async (t) => {
      const call = await open(await siteWithType(t));
      const data = { order: 'O-1', parcels: 2, to: { country: 'CH' } };
      const taken = await call('svc1.event.insert', { type, data }, { vk: 'a' });
      assert.deepEqual([taken.data.unknowns, taken.data.problems], [[], []]);
      for (const [broken, named] of [
        [{ order: 'O-1' }, [['data.parcels', 'missing']]],
        [
          { order: 7, parcels: 0 },
          [
            ['data.order', 'wrong_type'],
            ['data.parcels', 'out_of_range'],
          ],
        ],
        [{ ...data, to: { country: 'CHE' } }, [['data.to.country', 'out_of_range']]],
        [{ ...data, colour: 'red' }, [['data.colour', 'unknown_field']]],
        [
          {},
          [
            ['data.order', 'missing'],
            ['data.parcels', 'missing'],
          ],
        ],
      ] as const) {
        const { error } = await call('svc1.event.insert', { type, data: broken });
        const problems = error?.problems as readonly { field: string; reason: string }[];
        assert.equal(error?.code, 'invalid');
        assert.deepEqual(
          problems.map(({ field, reason }) => [field, reason]),
          named,
        );
        assert.equal(error.field, named[0][0]);
        assert.match(error.message, /^data\.\S+ .*The schema of \[event\.order\.shipped\] decides/);
      }
      assert.equal((await call('svc1.event.list', { type })).data.rows.length, 1);
    });

    test('is listed with an example that can be sent', async (t) => {
      const call = await open(await siteWithType(t));
      const { rows } = (await call('svc1.event.types', {})).data;
      const listed = rows.find((one: { type: string }) => one.type === type);
      const { examples, ...shown } = listed.schema;
      assert.deepEqual(shown, schema);
      assert.deepEqual(
        [listed.summary, listed.own, listed.source],
        ['An order has left.', false, 'server.ini'],
      );
      const sent = await call('svc1.event.insert', { type, data: examples[0] });
      assert.equal(sent.error, undefined);
    });

    test('is the nearest name of one that nothing knows', async (t) => {
      const call = await open(await siteWithType(t));
      const insert = async (one: string) =>
        (await call('svc1.event.insert', { type: one, data: {} })).data.problems;
      const near = {
        ...{ field: 'type', reason: 'no_effect', suggestion: type },
        message: 'No event type order.shiped is known. Did you mean order.shipped?',
      };
      assert.deepEqual(await insert('order.shiped'), [near]);
      const far = 'No event type ship.sunk is known. event.types has those.';
      const problem = { field: 'type', reason: 'no_effect', message: far };
      assert.deepEqual(await insert('ship.sunk'), [problem]);

      const event = ['order.shiped', type, 'sale.complete'];
      const hook = await call('svc1.webhook.insert', { url, event });
      assert.deepEqual(
        hook.data.problems.map((one: { field: string; suggestion: string }) => [
          one.field,
          one.suggestion,
        ]),
        [
          ['event', type],
          ['event', 'sale.completed'],
        ],
      );
      // What a hook waits for has an effect.
      assert.deepEqual(await insert('order.shiped'), []);
      const any = await call('svc1.webhook.insert', { url, event: '*', name: 'all' });
      assert.deepEqual(any.data.problems, []);
    });

    test('holds in a batch, which it refuses as a whole', async (t) => {
      const call = await open(await siteWithType(t));
      const event = (parcels: number) => ({
        a: 'svc1.event.insert',
        v: { type, data: { order: 'O-1', parcels } },
      });
      const refused = await call('svc1.batch', { operations: [event(1), event(0)] });
      assert.equal(refused.error?.code, 'invalid');
      assert.match(refused.error.message, /data\.parcels/);
      assert.deepEqual((await call('svc1.event.list', { type })).data.rows, []);
      assert.equal((await call('svc1.batch', { operations: [event(1)] })).data.done, true);
    });
  });
}

test('a type that a table raises is known, and a server without own types takes any', async (t) => {
  const site = await startSite(t);
  const insert = async (one: string) =>
    (await site.call('svc1.event.insert', { type: one })).data.problems;
  assert.deepEqual(await insert('ship.sunk'), []);
  assert.equal((await insert('sale.complete'))[0].suggestion, 'sale.completed');
  const table = {
    ...{ name: 'ships', events: { 'ship.renamed': { field: 'name' } } },
    schema: { type: 'object', properties: { name: { type: 'string' } } },
  };
  assert.equal((await site.call('svc1.table.insert', table)).error, undefined);
  const { rows } = (await site.call('svc1.event.types', {})).data;
  const listed = rows.find((one: { type: string }) => one.type === 'ship.renamed');
  assert.deepEqual([listed.source, listed.own], ['table', false]);
  assert.equal((await insert('ship.rename'))[0].suggestion, 'ship.renamed');
  assert.deepEqual(await insert('ship.renamed'), []);
});

test('a changed schema counts after a reload, and a repeat of an earlier event is still one', async (t) => {
  const site = await siteWithType(t);
  const v = { type, data: { order: 'O-1', parcels: 2 } };
  const first = await site.call('svc1.event.insert', v, { vk: 'once' });
  const stricter = { ...schema, required: ['order', 'parcels', 'to'] };
  await writeFile(join(site.folder, 'events/shipped.json'), JSON.stringify(stricter));
  site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
  const again = await site.call('svc1.event.insert', v, { vk: 'once' });
  assert.deepEqual([again.replayed, again.data.id], [true, first.data.id]);
  const { error } = await site.call('svc1.event.insert', v, { vk: 'twice' });
  assert.deepEqual([error?.code, error?.field], ['invalid', 'data.to']);
});

test('the documents of the API have the deliveries of the type', async (t) => {
  const site = await siteWithType(t);
  const documentOf = async (name: string) =>
    (await (await fetch(`${site.url}/svc1/${name}.json`)).json()) as Document;
  const [http, websocket] = [await documentOf('openapi'), await documentOf('asyncapi')];
  assert.equal(http.webhooks[type].post.summary, 'An order has left.');
  assert.equal(websocket.channels.webhooks.messages[type].summary, 'An order has left.');
  for (const { components } of [http, websocket]) {
    assert.equal(components.schemas[`${type}.data`].properties.parcels.minimum, 1);
  }
});

test('a counter refuses what its own ini file describes, and the centre what the centre’s does', async (t) => {
  const centre = await siteWithType(t);
  const v = { type, data: { order: 'O-1', parcels: 0 } };
  const counter = await startFollower(t, centre, { name: 'till', role: 'counter' });
  const { key: apikey } = (
    await centre.call('svc1.key.insert', { name: 'k', scopes: ['event', 'admin'] })
  ).data;
  await eventually(async () => {
    assert.equal((await counter.call('svc1.server.status', {}, { apikey })).error, undefined);
  });
  const taken = await counter.call('svc1.event.insert', v, { apikey });
  assert.deepEqual([taken.error, taken.data.seq], [undefined, null]);
  await eventually(async () => {
    const { data } = await counter.call('svc1.outbox.list', { refused: true }, { apikey });
    assert.match(JSON.stringify(data.rows), /data\.parcels/);
  });
  const own = await startFollower(t, centre, {
    ...{ name: 'desk', role: 'counter', ini: '[event.desk.opened]\nschema = opened.json\n' },
    files: { 'opened.json': '{"required":["by"]}' },
  });
  await eventually(async () => {
    assert.equal((await own.call('svc1.server.status', {}, { apikey })).error, undefined);
  });
  const { error } = await own.call('svc1.event.insert', { type: 'desk.opened' }, { apikey });
  assert.deepEqual([error?.code, error?.field], ['invalid', 'data.by']);
});

suite('an ini file with an event type', () => {
  const problemsOf = async (t: TestContext, text: string, file: string) => {
    const site = await startSite(t);
    await writeFile(join(site.folder, 'x.json'), file);
    await writeFile(site.iniFile, `[server]\n${text}\n`);
    return readTestConfig(site.iniFile).then(
      () => '',
      (error: unknown) => String(error),
    );
  };

  for (const [text, file, message] of [
    ['[event.Shipped]', '{}', /dotted, in lower case/],
    ['[event.draft.published]', '{}', /Waymark raises this event itself/],
    ['[event.a.b]\nschema = none.json', '{}', /none\.json.* not exist/],
    ['[event.a.b]\nschema = x.json', '[]', /x\.json/],
    ['[event.a.b]\nschema = x.json', '{"type":"array"}', /schema of an object/],
    ['[event.a.b]\nschema = x.json', '{"propertees":{}}', /propert/],
    ['[event.a.b]\nshema = x.json', '{}', /did you mean `schema`/],
  ] as const) {
    test(`with ${text} and ${file} is refused`, async (t) => {
      assert.match(await problemsOf(t, text, file), message);
    });
  }

  test('may describe a type of Waymark that applications insert', async (t) => {
    const text = '[event.sale.completed]\nschema = x.json';
    assert.equal(await problemsOf(t, text, '{"required":["till"]}'), '');
  });
});
