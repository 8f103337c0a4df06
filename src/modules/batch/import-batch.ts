import { isUtf8 } from 'node:buffer';
import { Failure } from '../../core/values/failure.ts';
import { parseDistinct } from '../../core/values/json/parse.ts';
import { isJsonObject, type JsonObject } from '../../core/values/json/json.ts';
import { batchOperationsMax } from './limits.ts';

/**
 * Reads the operations of a batch from NDJSON (docs/design/configuration.md#commands): a line is an
 * envelope `{a, v, vk}`, or a page rule with its vk among its fields. Throws `invalid` with the
 * number of a line that is neither, and `too_large`.
 */
export function batchOperations(bytes: Uint8Array): readonly JsonObject[] {
  if (!isUtf8(bytes)) throw new Failure('invalid', 'The lines are not UTF-8.');
  const text = Buffer.from(bytes)
    .toString()
    .replace(/^\uFEFF/, '');
  const operations = text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return [];
    return [operationOf(line, index + 1)];
  });
  if (operations.length > batchOperationsMax) {
    const count = operations.length;
    const message = `A batch has at most ${batchOperationsMax} operations; these are ${count}.`;
    throw new Failure('too_large', message);
  }
  if (operations.length > 0) return operations;
  throw new Failure('invalid', 'There is no line with an operation.');
}

function operationOf(line: string, number: number): JsonObject {
  const parsed = parsedLine(line);
  if (!isJsonObject(parsed)) throw new Failure('invalid', `line ${number}: not a JSON object.`);
  const { a, vk, ...fields } = parsed;
  const v = a === undefined ? fields : (parsed.v ?? {});
  return { a: a ?? 'svc1.userinterface.insert', v, ...(vk !== undefined && { vk }) };
}

function parsedLine(line: string): unknown {
  try {
    return parseDistinct(line);
  } catch (error) {
    if (error instanceof Failure) throw error;
    return undefined;
  }
}
