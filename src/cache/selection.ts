import { parseAccept } from '../http/negotiation.ts';
import { fieldLines, type FieldList } from '../http/reply.ts';
import { trimOws } from '../http/syntax.ts';

/** The fields of a request as its source is sent them, by lower-case name. */
export type SentField = (name: string) => string | undefined;

/** The names in an answer's Vary (RFC 9110 §12.5.5), lower case, each once, in their order. */
export function varyNames(fields: FieldList): readonly string[] {
  const names = fieldLines(fields, 'vary').flatMap((line) => line.split(','));
  return [...new Set(names.map((name) => name.trim().toLowerCase()))].filter((name) => name !== '');
}

/**
 * What a request says in the fields that some answers vary by, as one text: requests with the same
 * text are answered alike (RFC 9111 §4.1).
 */
export function selectingKey(names: readonly string[], sent: SentField): string {
  if (names.length === 0) return '';
  return names.map((name) => normalised(name, sent(name))).join('\n');
}

/** Fields whose members have weights and no order (RFC 9110 §12.5). */
const weighted = new Set(['accept', 'accept-charset', 'accept-encoding', 'accept-language']);

/**
 * A field value with what means the same written the same: spaces around the members of a list, and
 * of the fields with weights also case and order. An absent field is something else than an empty
 * one.
 */
function normalised(name: string, value: string | undefined): string {
  if (value === undefined) return '';
  if (weighted.has(name)) return `=${weights(value) ?? value}`;
  return `=${value.split(',').map(trimOws).join(',')}`;
}

/** Undefined for a field in which nothing can be read. */
function weights(value: string): string | undefined {
  const members = parseAccept(value).map(({ range, parameters, q }) =>
    [range, ...[...parameters].flat(), q].join(';'),
  );
  return members.length === 0 ? undefined : members.sort().join(',');
}
