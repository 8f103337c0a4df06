import { conditionTypes } from '../../breadcrumbs/conditions/table.ts';
import { lossCodes, sourceNames } from '../../model/explanation.ts';
import { ruleKinds } from '../../model/rule.ts';
import type { Description } from '../operation.ts';

/** Why a branch is not taken: that of a condition is its name. */
const branchLossCodes = ['invalid', 'earlier_branch', ...conditionTypes.map(({ name }) => name)];

const text = { type: 'string' } as const;
const source = { ...text, enum: sourceNames } as const;
const mount = { ...text, description: 'Name of a mount of the ini file.' } as const;
const id = { ...text, description: 'Id of a page rule.' } as const;
const status = {
  type: ['integer', 'null'],
  description: 'HTTP status of the answer; null where only another server knows it.',
} as const;

const candidate = {
  type: 'object',
  required: ['origin', 'path'],
  properties: {
    mount,
    id,
    kind: { ...text, enum: ruleKinds },
    origin: text,
    path: text,
    lost: {
      type: 'object',
      required: ['code', 'says'],
      properties: {
        code: { ...text, enum: lossCodes },
        says: { ...text, description: 'The same for a person.' },
      },
      description: 'Why it does not answer; absent where it does, or leads on to the next key.',
    },
    branches: {
      type: 'array',
      description: 'The branches of a breadcrumb that was followed, in order.',
      items: {
        type: 'object',
        required: ['branch'],
        properties: {
          branch: { ...text, description: 'when[0], when[1] and so on, or default.' },
          lost: {
            type: 'object',
            required: ['code', 'says'],
            properties: { code: { ...text, enum: branchLossCodes }, says: text },
            description: 'The first condition that does not hold; absent where it is taken.',
          },
        },
      },
    },
  },
} as const;

/** What the documents say of userinterface.explain. */
export const explainDescription: Description = {
  summary: 'How a request would be answered, and why: every source and candidate in order.',
  output: {
    title: 'Explanation',
    type: 'object',
    required: ['says', 'request', 'winner', 'status', 'tried', 'notes'],
    properties: {
      says: { ...text, description: 'The outcome in a sentence.' },
      request: {
        type: 'object',
        additionalProperties: true,
        description: 'What was asked, in canonical form.',
      },
      winner: {
        type: ['object', 'null'],
        required: ['source', 'status'],
        properties: { source, mount, id, status },
      },
      status,
      tried: {
        type: 'array',
        items: {
          type: 'object',
          required: ['source', 'candidates'],
          properties: {
            source,
            key: { ...text, description: 'Key of the breadcrumb that was looked up.' },
            candidates: { type: 'array', items: candidate },
            omitted: { type: 'integer', description: 'How many more candidates there are.' },
          },
        },
      },
      notes: { type: 'array', items: text, description: 'What else is worth a sentence.' },
    },
  },
};
