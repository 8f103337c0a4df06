import { families } from '../../../../src/families.ts';
import { uuidv7 } from 'uuidv7';
import { scheduleParts } from './schedule-parts.ts';
import { runPublish } from '../../../../src/modules/drafts/operations/publish.ts';
import {
  publishDue,
  waitingDrafts,
} from '../../../../src/modules/drafts/operations/scheduled-publisher.ts';
import { openStore } from '../../../../src/core/log/open.ts';

/**
 * A process that publishes the draft `draft` of a folder, and says when it begins: at once, or with
 * the word `scheduled` as its server does at the time of its schedule, which it makes first.
 */
const [folder = '', way] = process.argv.slice(2);
const now = Date.now;
const store = await openStore({ families, folder, now, newId: uuidv7 });
const parts = { store, newId: uuidv7, now };
const given = {
  draft: 'draft',
  resolve: {},
  others: undefined,
  by: 'test',
  reader: { keyId: undefined, scopes: new Set(['admin'] as const) },
  request: undefined,
  needsApproval: false,
};
const { report } = await runPublish(parts, { ...given, confirm: undefined });
const confirm = report.digest as string;
if (way === 'scheduled') {
  const at = new Date(now() - 1).toISOString();
  await runPublish(parts, { ...given, by: 'key', confirm, at: { at } });
  process.stdout.write('begins\n');
  await publishDue(scheduleParts(parts), waitingDrafts(store));
} else {
  process.stdout.write('begins\n');
  await runPublish(parts, { ...given, confirm });
}
process.stdout.write('published\n');
await store.close();
