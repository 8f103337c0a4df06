import { reportedFieldCharactersMax } from './limits.ts';

/** The value that stands for a secret. */
export const maskedValue = '***';

/** Words in the names of header fields whose values are often secrets. */
const secretWords = ['auth', 'cookie', 'key', 'password', 'secret', 'session', 'sign', 'token'];

/** Whether the value of a header field may be a secret, by its name. */
export function isSecretField(name: string): boolean {
  const lower = name.toLowerCase();
  return lower === 'x-service-hmac' || secretWords.some((word) => lower.includes(word));
}

/**
 * The first header fields of an answer, for the record of an attempt: name, value, name, value.
 * Values that may be secrets are masked, and the rest beyond the limit is left out.
 */
export function reportedFields(fields: readonly string[]): readonly string[] {
  const reported: string[] = [];
  let left = reportedFieldCharactersMax;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = fields[at] ?? '';
    const value = isSecretField(name) ? maskedValue : (fields[at + 1] ?? '');
    left -= name.length + value.length;
    if (left < 0) break;
    reported.push(name, value);
  }
  return reported;
}
