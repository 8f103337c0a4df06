import type { LogFamily } from './core/log/store.ts';
import { storedDrafts } from './modules/drafts/log/family.ts';
import { outboxFamily } from './modules/nodes/log/outbox-entries.ts';
import { storedRules } from './modules/rules/log/family.ts';
import { storedTables } from './modules/tables/log/family.ts';
import { storedHooks } from './modules/webhooks/log/family.ts';

/** What the modules keep in the log, in the order in which they upgrade older data. */
export const families: readonly LogFamily[] = [
  storedRules,
  storedHooks,
  storedTables,
  storedDrafts,
  outboxFamily,
];
