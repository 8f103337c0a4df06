import { tokenSource, trimOws, unquote, valueSource } from './syntax.ts';

/** A media type (RFC 9110 §8.3.1). */
export interface MediaType {
  /** `type/subtype`, lower case. */
  readonly type: string;
  /**
   * Values by lower-case name, quoted-strings unquoted; of a name that occurs twice the first
   * value.
   */
  readonly parameters: ReadonlyMap<string, string>;
}

const typePattern = new RegExp(`${tokenSource}/${tokenSource}`, 'y');
const parameterPattern = new RegExp(
  `[ \\t]*;[ \\t]*(?:(${tokenSource})=(${valueSource})|(?=[ \\t;]|$))`,
  'y',
);
const noParameters: ReadonlyMap<string, string> = new Map();

/**
 * Parses a media type such as `text/html; charset=utf-8` (RFC 9110 §8.3.1); undefined when it is
 * not one.
 */
export function parseMediaType(text: string): MediaType | undefined {
  const trimmed = trimOws(text);
  typePattern.lastIndex = 0;
  const type = typePattern.exec(trimmed)?.[0];
  if (type === undefined) return undefined;
  const parameters = parseParameters(trimmed, type.length);
  return parameters && { type: type.toLowerCase(), parameters };
}

/**
 * Parses `;name=value` repeated from a position of a text to its end (RFC 9110 §5.6.6); undefined
 * when malformed.
 */
export function parseParameters(
  text: string,
  from: number,
): ReadonlyMap<string, string> | undefined {
  if (from === text.length) return noParameters;
  const parameters = new Map<string, string>();
  for (let at = from; at < text.length; at = parameterPattern.lastIndex) {
    parameterPattern.lastIndex = at;
    const match = parameterPattern.exec(text);
    if (match === null) return undefined;
    const name = match[1]?.toLowerCase();
    if (name !== undefined && match[2] !== undefined && !parameters.has(name)) {
      parameters.set(name, unquote(match[2]));
    }
  }
  return parameters;
}
