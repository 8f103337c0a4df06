import type { Description } from '../operation.ts';
import { historyQuery, historyRows } from '../records/schema.ts';
import {
  newRule,
  pageRule,
  preferMember,
  ruleEdit,
  vkMember,
  writtenRule,
} from './record-schema.ts';

/** What the documents say of userinterface.insert. */
export const insertDescription: Description = {
  summary: 'Adds a page rule.',
  fields: newRule,
  envelope: { vk: vkMember, prefer: preferMember },
  output: writtenRule,
  etag: true,
  failures: ['conflict'],
};

/** What the documents say of userinterface.edit. */
export const editDescription: Description = {
  summary: 'Changes the fields of a page rule that are sent, null removing one.',
  fields: ruleEdit,
  envelope: { vk: vkMember, prefer: preferMember },
  output: writtenRule,
  etag: true,
  failures: ['not_found', 'conflict', 'precondition_failed'],
};

/** What the documents say of userinterface.read. */
export const readDescription: Description = {
  summary: 'A page rule whole, or with the query kind history its rows, newest first.',
  envelope: { qk: historyQuery },
  output: { oneOf: [pageRule, historyRows] },
  etag: true,
  failures: ['not_found'],
};
