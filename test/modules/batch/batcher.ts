// Runs a batch on a data folder; its end follows "begins", unless the process is killed before.
import { runBatch } from '../../../src/modules/batch/run-batch.ts';
import { createBatchParts } from '../../../src/modules/batch/batch-parts.ts';
import { bindOperations } from '../../../src/core/operations/operation.ts';
import { batched } from '../../../src/modules/batch/batch-parts.ts';
import { unknownAddress } from '../../../src/core/values/network/peer.ts';
import { openIn } from '../../core/log/scratch.ts';

const [folder = '', count = '0'] = process.argv.slice(2);
const settings = {
  ...{
    base: '',
    publicUrl: undefined,
    engines: [],
    accessNames: [],
    configuredTables: [],
    eventTypes: '[]',
  },
  ...{ allowPrivate: [], webhookAllowPrivate: [], node: { role: 'all', name: 'test' } as const },
};
const operations = Array.from({ length: Number(count) }, (_, at) =>
  at % 2 === 0
    ? { a: 'svc1.userinterface.edit', v: { id: `r${at / 2}`, content: 'batched' } }
    : { a: 'svc1.userinterface.insert', v: { path: `/n${at}`, content: 'batched' } },
);
const store = await openIn(folder);
process.stdout.write('begins\n');
await runBatch(
  store,
  {
    operations: JSON.stringify(operations),
    caller: { scopes: new Set(['admin']), keyId: 'key', rate: undefined, address: unknownAddress },
    ...{ by: 'key', origin: 'http://localhost', isStrict: false, vk: undefined, dry: false },
  },
  (target) =>
    bindOperations(
      batched,
      createBatchParts(target, settings, () => 'whsec_x'),
    ),
);
process.stdout.write('done\n');
await store.close();
