import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { knownEventTypes, type OwnEventType } from '../../../src/core/log/events/event-types.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import { local, startRig, type Rig } from './rig.ts';

interface Cause {
  /** Makes a server raise events of a type. */
  readonly run: (rig: Rig, t: TestContext) => Promise<void>;
  /** The values of some members of their data, which identify them. */
  readonly raises: readonly string[];
}

/** Causes of each event that Waymark raises: a type without one does not compile. */
const causes: Readonly<Record<OwnEventType, Cause>> = {
  'record.changed': {
    run: async ({ site, id }) => {
      const rule = await site.call('svc1.userinterface.insert', { path: '/a', kind: 'content' });
      const { id: ruleId } = rule.data;
      await site.call('svc1.userinterface.edit', { id: ruleId, path: '/b' });
      const { digest } = (await site.call('svc1.userinterface.invalidate', { id: ruleId })).data;
      await site.call('svc1.userinterface.invalidate', { id: ruleId, confirm: digest });
      await site.call('svc1.webhook.pause', { id });
      const key = await site.call('svc1.key.insert', { name: 'till', scopes: ['read'] });
      await site.call('svc1.key.revoke', { id: key.data.id });
    },
    raises: [
      ...['key insert', 'key invalidate', 'webhook edit', 'webhook insert'],
      ...['userinterface edit', 'userinterface insert', 'userinterface invalidate'],
    ],
  },
  'error.detected': {
    run: async ({ site, receiver, insertEvent }) => {
      const enginedata = { source: 'http://127.0.0.1:1/*' };
      const rule = { path: '/far/*', kind: 'content.fetch', enginedata };
      await site.call('svc1.userinterface.insert', rule);
      assert.equal((await fetch(`${site.url}/far/a`)).status, 502);
      receiver.answer = () => 500;
      await insertEvent();
    },
    raises: ['bad_gateway', 'delivery_exhausted'],
  },
  'draft.submitted': {
    run: async ({ site }) => {
      await site.call('svc1.draft.insert', { name: 'spring' });
      await site.call('svc1.draft.submit', { draft: 'spring' });
    },
    raises: [''],
  },
  'draft.approved': {
    run: async ({ site }) => {
      await site.call('svc1.draft.insert', { name: 'spring' });
      const { data } = await site.call('svc1.draft.changes', { draft: 'spring' });
      await site.call('svc1.draft.approve', { draft: 'spring', confirm: data.digest });
    },
    raises: [''],
  },
  'draft.published': {
    run: async ({ site }) => {
      const draft = 'spring';
      await site.call('svc1.draft.insert', { name: draft });
      await site.call('svc1.userinterface.insert', { path: '/a', content: 'a' }, { draft });
      const { digest: confirm } = (await site.call('svc1.draft.publish', { draft })).data;
      await site.call('svc1.draft.publish', { draft, confirm });
    },
    raises: [''],
  },
  'draft.publish_failed': {
    run: async ({ site }, t) => {
      const draft = 'spring';
      await site.call('svc1.draft.insert', { name: draft });
      await site.call('svc1.userinterface.insert', { path: '/a', content: 'a' }, { draft });
      const scopes = ['publish', 'read'];
      const { data: key } = await site.call('svc1.key.insert', { name: 'editor', scopes });
      const { digest: confirm } = (await site.call('svc1.draft.publish', { draft })).data;
      // The clock stands still until the key is revoked, however long that takes.
      const nowMs = Date.now();
      t.mock.timers.enable({ apis: ['Date'], now: nowMs });
      const at = new Date(nowMs + 50).toISOString();
      const given = { draft, confirm, at };
      const made = await site.call('svc1.draft.publish', given, { apikey: key.key });
      assert.equal(made.error, undefined);
      await site.call('svc1.key.revoke', { id: key.id });
      t.mock.timers.setTime(nowMs + 50);
    },
    raises: [''],
  },
  'webhook.test': {
    run: async ({ site, id }) => {
      await site.call('svc1.webhook.test', { id });
    },
    raises: [''],
  },
};

suite('an event that Waymark raises has the data that its schema describes, and no more', () => {
  const ajv = new Ajv2020({ strict: true, allErrors: true });
  for (const { type, schema, own } of knownEventTypes) {
    if (!own) continue;
    test(type, async (t) => {
      const ini = `${local}[fetch]\nallow_private = 127.0.0.0/8\n`;
      const rig = await startRig(t, { retry_limit: 1 }, ini);
      const { run, raises } = causes[type as OwnEventType];
      await run(rig, t);
      const validate = ajv.compile({ ...schema, additionalProperties: false });
      const missing = new Set(raises);
      while (missing.size > 0) {
        for (const data of await eventData(rig, type)) {
          assert.ok(validate(data), ajv.errorsText(validate.errors));
          missing.delete(identityOf(data));
        }
        await delay(5);
      }
    });
  }
});

test('the page for receivers lists every known event type, and those that Waymark raises', async (t) => {
  const { site } = await startRig(t);
  const page = await (await fetch(`${site.url}/svc1/webhooks`)).text();
  for (const { type, own, summary } of knownEventTypes) {
    const mark = own ? '<span>raised by Waymark</span>' : '';
    assert.ok(page.includes(`<dt><code>${type}</code>${mark}</dt><dd>${summary}</dd>`), type);
  }
});

async function eventData({ site }: Rig, type: string): Promise<readonly JsonObject[]> {
  const { rows } = (await site.call('svc1.event.list', { type, limit: 100 })).data;
  return rows.map(({ data }: { readonly data: JsonObject }) => data);
}

function identityOf({ table, action, code }: JsonObject): string {
  return [table, action, code].filter((one) => typeof one === 'string').join(' ');
}
