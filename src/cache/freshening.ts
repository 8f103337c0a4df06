import { replyField, type FieldList } from '../http/reply.ts';
import { selectingsPerAnswerMax } from './limits.ts';
import type { StoredResponse } from './cached-response.ts';
import { freshnessOf, type ReceivedHeader } from './freshness.ts';
import { selectingKey, varyNames, type SentField } from './selection.ts';
import { splitFields } from './storability.ts';

/** Fields that freshening leaves unchanged (RFC 9111 §3.2): they describe the stored content. */
const notUpdated: ReadonlySet<string> = new Set([
  'content-encoding',
  'content-length',
  'content-range',
  'content-type',
]);

/** A freshened response, and the fields for the requesting client only. */
interface FreshenedResponse {
  readonly answer: StoredResponse;
  readonly privateFields: FieldList;
}

/**
 * Freshens a stored response with the fields of a 304, or of the 200 to a HEAD (RFC 9111 §3.2): a
 * new field replaces all lines of the old one. It matches the current request, and the earlier ones
 * too unless its Vary has changed (§4.1).
 */
export function freshened(
  stored: StoredResponse,
  update: ReceivedHeader,
  sent: SentField,
): FreshenedResponse {
  const fresh = update.fields;
  const replaced = new Set(fresh.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()));
  const isOver = (name: string): boolean => replaced.has(name) && !notUpdated.has(name);
  const kept = pairsWhere(stored.fields, (name) => !isOver(name));
  const added = pairsWhere(fresh, (name) => !notUpdated.has(name));
  const fields = [...kept, ...added];
  const names = varyNames(fields);
  const key = selectingKey(names, sent);
  const isSameVary = names.join() === stored.varyNames.join();
  const others = isSameVary ? stored.selecting.filter((one) => one !== key) : [];
  const { stored: shared, privateFields } = splitFields(fields);
  const answer = {
    ...stored,
    fields: shared,
    varyNames: names,
    selecting: [key, ...others].slice(0, selectingsPerAnswerMax),
    freshness: freshnessOf({ ...update, status: stored.status, fields }),
  };
  return { answer, privateFields };
}

/**
 * Whether a 304 selects a stored response (RFC 9111 §4.3.4): by its entity tag, else by
 * Last-Modified. A 304 without a validator selects the only response that was validated.
 */
export function isSelectedBy304(
  stored: StoredResponse,
  fields: FieldList,
  askedAbout: number,
): boolean {
  for (const name of ['etag', 'last-modified']) {
    const confirmed = replyField({ fields }, name);
    if (confirmed !== undefined)
      return opaqueTag(replyField(stored, name)) === opaqueTag(confirmed);
  }
  return askedAbout === 1;
}

/**
 * Whether the response to a HEAD has the validators and length of a stored one (RFC 9111 §4.3.5).
 */
export function isSameRepresentation(stored: StoredResponse, fields: FieldList): boolean {
  return ['etag', 'last-modified', 'content-length'].every((name) => {
    const said = replyField({ fields }, name);
    return said === undefined || said === replyField(stored, name);
  });
}

function opaqueTag(tag: string | undefined): string | undefined {
  return tag?.replace(/^W\//, '');
}

function pairsWhere(fields: FieldList, wanted: (lowerCaseName: string) => boolean): FieldList {
  return fields.filter((_, at) => wanted(fields[at - (at % 2)]?.toLowerCase() ?? ''));
}
