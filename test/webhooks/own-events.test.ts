import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { knownEventTypes, type OwnEventType } from '../../src/model/event-types.ts';
import type { JsonObject } from '../../src/model/json.ts';
import { local, startRig, type Rig } from './rig.ts';

interface ListedEvent {
  readonly type: string;
  readonly data: JsonObject;
}

/** Makes a server raise its events, by type. A new type of its own does not compile without one. */
const causes: Readonly<Record<OwnEventType, (rig: Rig) => Promise<void>>> = {
  'record.changed': async ({ site, id }) => {
    const rule = await site.call('svc1.userinterface.insert', { path: '/a', kind: 'content' });
    await site.call('svc1.userinterface.edit', { id: rule.data.id, path: '/b' });
    const { id: ruleId } = rule.data;
    const { digest } = (await site.call('svc1.userinterface.invalidate', { id: ruleId })).data;
    await site.call('svc1.userinterface.invalidate', { id: ruleId, confirm: digest });
    await site.call('svc1.webhook.pause', { id });
    await site.call('svc1.webhook.resume', { id });
    const key = await site.call('svc1.key.insert', { name: 'till', scopes: ['read'] });
    await site.call('svc1.key.revoke', { id: key.data.id });
  },
  'error.detected': async ({ site, receiver, tell }) => {
    const enginedata = { source: 'http://127.0.0.1:1/*' };
    await site.call('svc1.userinterface.insert', {
      path: '/far/*',
      kind: 'content.fetch',
      enginedata,
    });
    assert.equal((await fetch(`${site.url}/far/a`)).status, 502);
    receiver.answer = () => 500;
    await tell();
  },
  'webhook.test': async ({ site, id }) => {
    await site.call('svc1.webhook.test', { id });
  },
};

test('each event that Waymark raises has the data that its schema describes, and no more', async (t) => {
  const ini = `${local}[fetch]\nallow_private = 127.0.0.0/8\n`;
  const rig = await startRig(t, { retry_limit: 1 }, ini);
  for (const cause of Object.values(causes)) await cause(rig);
  const seen = new Set<string>();
  const ajv = new Ajv2020({ strict: true, allErrors: true });
  for (const { type, schema, own } of knownEventTypes) {
    if (!own) continue;
    const validate = ajv.compile({ ...schema, additionalProperties: false });
    const isExpected = (events: readonly ListedEvent[]) =>
      type === 'error.detected' ? events.length >= 2 : events.length >= 1;
    const events = await listEvents(rig, type, isExpected);
    for (const { data } of events) {
      assert.ok(validate(data), `${type}: ${ajv.errorsText(validate.errors)}`);
      const details = [data.table, data.action, data.code].filter((one) => typeof one === 'string');
      seen.add([type, ...details].join(' '));
    }
  }
  assert.deepEqual([...seen].toSorted(), [
    'error.detected bad_gateway',
    'error.detected delivery_exhausted',
    'record.changed key insert',
    'record.changed key invalidate',
    'record.changed userinterface edit',
    'record.changed userinterface insert',
    'record.changed userinterface invalidate',
    'record.changed webhook edit',
    'record.changed webhook insert',
    'webhook.test',
  ]);
});

test('the page for receivers lists every known event type, and those that Waymark raises', async (t) => {
  const { site } = await startRig(t);
  const page = await (await fetch(`${site.url}/svc1/webhooks`)).text();
  for (const { type, own, summary } of knownEventTypes) {
    const mark = own ? '<span>raised by Waymark</span>' : '';
    assert.ok(page.includes(`<dt><code>${type}</code>${mark}</dt><dd>${summary}</dd>`), type);
  }
});

async function listEvents(
  { site }: Rig,
  type: string,
  isExpected: (events: readonly ListedEvent[]) => boolean,
): Promise<readonly ListedEvent[]> {
  for (;;) {
    const { rows } = (await site.call('svc1.event.list', { type, limit: 100 })).data;
    if (isExpected(rows)) return rows;
    await delay(5);
  }
}
