import { uuidv7 } from 'uuidv7';
import { runPublish } from '../../../src/api/drafts/publish.ts';
import { openStore } from '../../../src/store/open.ts';

/** A process that publishes the draft `draft` of a folder, and says when it begins. */
const [folder = ''] = process.argv.slice(2);
const now = Date.now;
const store = await openStore({ folder, now, newId: uuidv7 });
const parts = { store, newId: uuidv7, now };
const given = {
  draft: 'draft',
  resolve: {},
  others: undefined,
  by: 'test',
  reader: { keyId: undefined },
  request: undefined,
  needsApproval: false,
};
const { report } = await runPublish(parts, { ...given, confirm: undefined });
process.stdout.write('begins\n');
await runPublish(parts, { ...given, confirm: report.digest as string });
process.stdout.write('published\n');
await store.close();
