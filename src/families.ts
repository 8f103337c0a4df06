import type { LogFamily } from './core/log/store.ts';
import { draftFamily } from './modules/drafts/log/family.ts';
import { outboxFamily } from './modules/nodes/log/outbox-entries.ts';
import { ruleFamily } from './modules/rules/log/family.ts';
import { tableFamily } from './modules/tables/log/family.ts';
import { hookFamily } from './modules/webhooks/log/family.ts';

/** What the modules keep in the log, in the order in which they upgrade older data. */
export const families: readonly LogFamily[] = [
  ruleFamily,
  hookFamily,
  tableFamily,
  draftFamily,
  outboxFamily,
];
