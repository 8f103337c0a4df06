import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Change } from '../../../src/core/log/change.ts';
import { TableVersions, changesReadMax } from '../../../src/modules/rendering/page-rows.ts';

test('the version of a table changes with its rows, and with any definition of a table', () => {
  const log: Pick<Change, 'family' | 'id' | 'data'>[] = [];
  const versions = new TableVersions({
    seq: () => log.length,
    change: (seq) => log[seq - 1] as Change | undefined,
    rowBytes: () => 1,
    of: () => ({ row: () => undefined }) as never,
  });
  const row = (table: string) => log.push({ family: 'record', id: 'r', data: { table } });
  row('letters');
  const first = versions.version(['letters']);
  assert.equal(versions.version(['letters']), first);
  row('products');
  log.push({ family: 'userinterface', id: 'u', data: {} });
  assert.equal(versions.version(['letters']), first);
  const both = versions.version(['letters', 'products']);
  row('letters');
  assert.notEqual(versions.version(['letters']), first);
  assert.notEqual(versions.version(['letters', 'products']), both);
  const second = versions.version(['letters']);
  log.push({ family: 'table', id: 't', data: {} });
  assert.notEqual(versions.version(['letters']), second);
  const third = versions.version(['letters']);
  for (let many = 0; many <= changesReadMax; many += 1) row('products');
  assert.notEqual(versions.version(['letters']), third);
});
