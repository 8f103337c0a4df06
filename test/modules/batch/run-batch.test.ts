import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBatchParts } from '../../../src/modules/batch/batch-parts.ts';
import { runBatch } from '../../../src/modules/batch/run-batch.ts';
import { batched } from '../../../src/modules/batch/batch-parts.ts';
import { bindOperations } from '../../../src/core/operations/operation.ts';
import { unknownAddress } from '../../../src/core/values/network/peer.ts';
import { scratchStore } from '../../core/log/scratch.ts';

const settings = {
  ...{ base: '', publicUrl: undefined, engines: [], accessNames: [], configuredTables: [] },
  eventTypes: '[]',
  ...{ allowPrivate: [], webhookAllowPrivate: [], node: { role: 'all', name: 'test' } as const },
};

test('ends after its time and writes nothing, because all other writes wait', async (t) => {
  const store = await scratchStore(t);
  const operations = Array.from({ length: 60 }, (_, at) => ({
    a: 'svc1.userinterface.insert',
    v: { path: `/p${at}`, content: 'x' },
  }));
  const request = {
    operations: JSON.stringify(operations),
    caller: { scopes: new Set(['admin'] as const), keyId: 'key', rate: undefined },
    ...{ by: 'key', origin: 'http://localhost', isStrict: false, vk: undefined },
  };
  let ms = 0;
  const run = (dry: boolean, stepMs: number) =>
    runBatch(
      store,
      { ...request, dry, caller: { ...request.caller, address: unknownAddress } },
      (target) =>
        bindOperations(
          batched,
          createBatchParts(target, settings, () => 'whsec_x'),
        ),
      () => (ms += stepMs),
    );
  for (const dry of [false, true]) {
    await assert.rejects(run(dry, 1_000), { code: 'too_large', field: 'operations' });
  }
  assert.equal(store.seq(), 0);
  const { report } = await run(false, 1);
  assert.equal(report.inserted, operations.length);
});
