import { createHash } from 'node:crypto';
import { Failure, failureFrom } from '../model/failure.ts';
import {
  canonicalJson,
  isJsonObject,
  nestsDeeper,
  type Json,
  type JsonObject,
} from '../model/json.ts';
import { jsonDepthMax } from '../model/limits.ts';
import type { LoggedDraft, Store } from '../store/store.ts';
import { placeFields } from './placement.ts';

/** What an import stands on. */
export interface ImportParts {
  readonly store: Store;
  readonly newId: () => string;
  readonly engines: ReadonlySet<string>;
}

const insertName = 'svc1.userinterface.insert';

/**
 * Imports page rules from NDJSON (contract §1: a rule a line, its vk beside its fields, or an
 * envelope `{a, v, vk}`) in one transaction: all lines or none. Resolves to how many rules came in.
 * Rejects with `invalid`, naming every line that cannot be imported.
 */
export async function importRules(
  { store, newId, engines }: ImportParts,
  text: string,
): Promise<number> {
  const drafts: LoggedDraft[] = [];
  const problems: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    try {
      const { v, vk } = parseLine(line);
      const { data } = placeFields({ current: undefined, sent: v, shown: {}, engines });
      const requestHash = createHash('sha256')
        .update(canonicalJson(['insert', v]))
        .digest('hex');
      drafts.push({
        family: 'userinterface',
        id: newId(),
        action: 'insert',
        data,
        vk: { vk: vk ?? `fields:${requestHash}`, requestHash },
      });
    } catch (thrown) {
      problems.push(`line ${index + 1}: ${failureFrom(thrown).message}`);
    }
  }
  if (problems.length > 0) throw new Failure('invalid', problems.join('\n'));
  return store.commit('import', () => ({ drafts, answer: (changes) => changes.length }));
}

function parseLine(line: string): { readonly v: JsonObject; readonly vk: string | undefined } {
  const row = parseObject(line);
  const { a, vk, ...fields } = row;
  if (a !== undefined && a !== insertName) {
    throw new Failure('invalid', `${JSON.stringify(a)} cannot be imported, only ${insertName}.`);
  }
  const v: Json | undefined = a === undefined ? fields : row.v;
  if (!isJsonObject(v)) throw new Failure('invalid', 'v must be an object of fields.');
  if (vk !== undefined && typeof vk !== 'string') {
    throw new Failure('invalid', 'vk must be a string.');
  }
  return { v, vk };
}

function parseObject(line: string): JsonObject {
  let row: unknown;
  try {
    row = JSON.parse(line) as unknown;
  } catch {
    throw new Failure('invalid', 'not JSON.');
  }
  if (!isJsonObject(row)) throw new Failure('invalid', 'not a JSON object.');
  if (nestsDeeper(row, jsonDepthMax)) throw new Failure('too_large', 'nested too deep.');
  return row;
}
