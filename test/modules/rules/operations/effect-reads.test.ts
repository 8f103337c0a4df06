import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  effectProblems,
  outcomesExaminedMax,
} from '../../../../src/modules/rules/operations/effects.ts';
import type { Candidate, StoredRule } from '../../../../src/modules/rules/rule.ts';
import { someVisitor } from '../../../visitor.ts';

type Parts = Parameters<typeof effectProblems>[0];

/** A store that has a breadcrumb for each key, and tells which of them were read. */
function storeOf(read: string[]): Parts['store'] {
  const candidate = (path: string): Candidate => ({
    ...{ id: path, seq: 1, insertedSeq: 1, origin: '*', path, kind: 'resolve' },
    ...{ lang: undefined, rve: undefined, designedAtMs: undefined },
  });
  const reads = {
    exactRules: (origin: string, path: string) => (origin === '*' ? [candidate(path)] : []),
    wildcardRules: () => [],
    tablesAfter: () => [],
    rule(id: string) {
      read.push(id);
      const enginedata = { target: '/there' };
      const rule = { id, origin: '*', path: id, kind: 'resolve', enginedata } as const;
      return { rule, seq: 1, insertedSeq: 1 };
    },
  };
  return { of: () => reads as never };
}

/** The problems of a breadcrumb whose branches lead to keys. */
function problemsOf(keys: readonly string[], read: string[]): readonly object[] {
  const when = keys.map((key, at) => ({
    if: { query: { a: String(at) } },
    target: `key:${key}`,
  }));
  const enginedata = { when, target: '/else' };
  const rule = { id: 'r', origin: '*', path: 'start', kind: 'resolve', enginedata };
  const stored = { rule, seq: 1, insertedSeq: 1 } as unknown as StoredRule;
  const parts: Parts = { store: storeOf(read), view: { schemaOf: () => undefined } };
  const caller = { scopes: new Set(), keyId: 'k', rate: undefined, address: '192.0.2.1' } as const;
  const call = { origin: 'http://a.example', fields: {}, visitor: someVisitor(), caller } as const;
  return effectProblems(parts, stored, call as unknown as Parameters<typeof effectProblems>[2]);
}

test('a write reads a breadcrumb to which many branches lead once', () => {
  const read: string[] = [];
  const keys = Array.from({ length: 90 }, () => 'there');
  assert.deepEqual(problemsOf(keys, read), []);
  assert.deepEqual(read, ['there']);
});

test('a write reads a limited number of breadcrumbs', () => {
  const read: string[] = [];
  const keys = Array.from({ length: 1_000 }, (_, at) => `there${at}`);
  assert.deepEqual(problemsOf(keys, read), []);
  assert.ok(read.length > 0 && read.length <= outcomesExaminedMax, String(read.length));
});
