import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type TemplateRequest, parseTemplate } from '../../../src/core/http/field-template.ts';
import type { Visitor } from '../../../src/core/http/visitor.ts';

/** The value of `${user}` in a field, as its bytes in UTF-8. */
function sent(name: string, text = '${user}'): string | undefined {
  const visitor = { user: () => ({ name, roles: [] }) } as unknown as Visitor;
  const request = { visitor, fields: {} } as unknown as TemplateRequest;
  const value = parseTemplate(text).value(request);
  return value === undefined ? undefined : Buffer.from(value, 'latin1').toString();
}

suite('the name of a user in a field', () => {
  for (const name of ['ann', 'Zoë', 'vilà', 'КРАЙ Р', '堠', 'a b']) {
    test(`is sent whole: ${name}`, () => {
      assert.equal(sent(name), name);
      assert.equal(sent(name, ' user ${user} '), `user ${name}`);
    });
  }

  for (const name of ['ad\0min', 'admin\r\n', ' admin', 'admin\t', 'ad\u007fmin']) {
    test(`is not that of somebody else: ${JSON.stringify(name)}`, () => {
      assert.equal(sent(name), undefined);
      assert.equal(sent(name, 'user ${user}'), 'user');
    });
  }
});
