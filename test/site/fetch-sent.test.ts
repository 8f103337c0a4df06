import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { requestFields } from '../../src/site/fetch-fields.ts';
import { createSentFields } from '../../src/site/fetch-sent.ts';
import { fetchPlan } from '../../src/site/fetch-source.ts';
import { fetchRule, visit } from './fetch-rig.ts';

const planOf = (headers: Readonly<Record<string, string>>) =>
  fetchPlan(fetchRule({ source: 'http://src.example/*', headers }));

suite('which fields a source is sent', () => {
  const plan = planOf({ 'x-rule': 'a' });
  const first = visit({ fields: { accept: 'text/html' } });

  test('is found out once for the same request', () => {
    const sentFields = createSentFields('waymark');
    const sent = sentFields(plan, first, false);
    assert.deepEqual(sent, requestFields(plan, first, false, 'waymark'));
    assert.equal(sentFields(plan, { ...first }, false), sent);
  });

  const others = {
    'another rule': { plan: planOf({ 'x-rule': 'b' }), request: first, hasBody: false },
    'another address': { plan, request: { ...first, address: '192.0.2.99' }, hasBody: false },
    'another origin': { plan, request: { ...first, origin: 'https://b.example' }, hasBody: false },
    'other words': { plan, request: visit({ fields: { accept: 'text/*' } }), hasBody: false },
    content: {
      plan,
      request: visit({ fields: { 'content-length': '5' } }),
      hasBody: true,
    },
  };
  for (const [what, { plan: other, request, hasBody }] of Object.entries(others)) {
    test(`is found out anew for ${what}, and for the first again`, () => {
      const sentFields = createSentFields('waymark');
      const before = sentFields(plan, first, false);
      const sent = sentFields(other, request, hasBody);
      assert.deepEqual(sent, requestFields(other, request, hasBody, 'waymark'));
      assert.notDeepEqual(sent, before);
      assert.deepEqual(sentFields(plan, first, false), before);
    });
  }
});
