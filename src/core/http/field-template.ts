import type { ContentRequest } from './request.ts';
import { tokenSource, trimOws } from './syntax.ts';

/** The parts of a request that variables stand for. */
export type TemplateRequest = Pick<
  ContentRequest,
  'origin' | 'path' | 'query' | 'method' | 'fields' | 'address' | 'visitor'
> & {
  /** The nonce of the answer; undefined for an answer without a place for one. */
  readonly nonce?: string;
};

/** The value of a header field, with variables such as `${host}`. */
export interface FieldTemplate {
  /** The names of its variables. */
  readonly variables: readonly string[];
  /**
   * The value for a request, without control characters and without white space around it;
   * undefined for an empty one. `user` needs a visitor that is prepared.
   */
  readonly value: (request: TemplateRequest) => string | undefined;
}

/** The variables besides `request.header.<name>`, each with its value for a request. */
const variables: ReadonlyMap<string, (request: TemplateRequest) => string> = new Map<
  string,
  (request: TemplateRequest) => string
>([
  ['client.certificate.fingerprint', ofCertificate('fingerprint')],
  ['client.certificate.issuer', ofCertificate('issuer')],
  ['client.certificate.serial', ofCertificate('serial')],
  ['client.certificate.subject', ofCertificate('subject')],
  ['client.ip', ({ address }) => address],
  ['host', ({ origin }) => authorityOf(origin).replace(/:\d+$/, '')],
  ['method', ({ method }) => method],
  ['nonce', ({ nonce }) => nonce ?? ''],
  ['origin', ({ origin }) => origin],
  ['path', ({ path }) => encodeURI(path.toWellFormed())],
  ['query', ({ query }) => query],
  ['scheme', ({ origin }) => origin.slice(0, origin.indexOf('://'))],
  // A field has bytes, and readers of names expect UTF-8.
  ['user', ({ visitor }) => Buffer.from(visitor.user()?.name ?? '').toString('latin1')],
]);

/** A part of the client's certificate, empty without one that counts for the host at the moment. */
function ofCertificate(
  part: 'fingerprint' | 'issuer' | 'serial' | 'subject',
): (request: TemplateRequest) => string {
  return ({ visitor }) => {
    const client = visitor.certificate();
    if (client?.state !== 'valid' || client.certificate.endMs <= visitor.nowMs) return '';
    return Buffer.from(client.certificate[part]).toString('latin1');
  };
}

/** The names of all variables, in words for a message. */
export const variableWords = `\${request.header.<name>}, ${[...variables.keys()]
  .filter((name) => name !== 'nonce')
  .map((name) => `\${${name}}`)
  .join(', ')}`;

/** Variables whose value the URL decides, not the client; an answer with a nonce is sent once. */
const ofUrl: ReadonlySet<string> = new Set(['host', 'nonce', 'origin', 'path', 'query', 'scheme']);

const headerVariable = new RegExp(`^request\\.header\\.(${tokenSource})$`);
const reference = /\$\$\{|\$\{([^}]*)\}?/g;

/** Whether a name is that of a variable. The API key of a request is for this server alone. */
export function isTemplateVariable(name: string): boolean {
  return isAnswerVariable(name) && name !== 'nonce';
}

/** Whether a name is that of a variable for the fields of the ini file for answers. */
export function isAnswerVariable(name: string): boolean {
  return variables.has(name) || (headerVariable.test(name) && fieldOfVariable(name) !== 'apikey');
}

/** Whether a variable names the person or program that asks: the user, or its certificate. */
export function isOfClient(variable: string): boolean {
  return variable === 'user' || variable.startsWith('client.certificate.');
}

/** Whether two requests for the same URL get the same value. */
export function isSameForUrl({ variables: used }: FieldTemplate): boolean {
  return used.every((name) => ofUrl.has(name));
}

/** The field that a variable stands for, by its lower-case name; undefined for other variables. */
export function fieldOfVariable(name: string): string | undefined {
  return headerVariable.exec(name)?.[1]?.toLowerCase();
}

/** The first reference in a text to a variable that does not exist, such as `${hots}`. */
export function unknownVariable(text: string): string | undefined {
  for (const [whole, name] of text.matchAll(reference)) {
    if (name !== undefined && !(whole.endsWith('}') && isTemplateVariable(name))) return whole;
  }
  return undefined;
}

/**
 * Parses a value with variables; `$${` is a literal `${`. A reference to a variable that does not
 * exist is literal text, too.
 */
export function parseTemplate(text: string): FieldTemplate {
  const used: string[] = [];
  const parts: (string | ((request: TemplateRequest) => string))[] = [];
  let end = 0;
  for (const match of text.matchAll(reference)) {
    const [whole, name] = match;
    parts.push(text.slice(end, match.index));
    end = match.index + whole.length;
    if (name === undefined) parts.push('${');
    else if (whole.endsWith('}') && isAnswerVariable(name)) {
      used.push(name);
      parts.push(variableValue(name));
    } else parts.push(whole);
  }
  parts.push(text.slice(end));
  if (used.length === 0) {
    const value = parts.join('').trim() || undefined;
    return { variables: used, value: () => value };
  }
  return {
    variables: used,
    value: (request) => {
      let text = '';
      for (const part of parts) {
        text += typeof part === 'string' ? part : part(request).replace(notInField, '');
      }
      // Not `trim`: the last byte of à, in UTF-8, is a space to it.
      return trimOws(text) || undefined;
    },
  };
}

/** Characters that a field cannot have (RFC 9110 §5.5): controls, and those that are no byte. */
const notInField = /[^\t\x20-\x7e\x80-\xff]/g;

function variableValue(name: string): (request: TemplateRequest) => string {
  const field = fieldOfVariable(name);
  if (field !== undefined) return ({ fields }) => fields[field] ?? '';
  const value = variables.get(name);
  if (value === undefined) throw new TypeError(`no variable ${name}`);
  // Without what no field can have, the name of somebody could be that of somebody else.
  return isOfClient(name) ? (request) => wholeOrNone(value(request)) : value;
}

function wholeOrNone(name: string): string {
  const isWhole = trimOws(name) === name && name.search(notInField) === -1;
  return isWhole ? name : '';
}

/** The authority of an origin. */
export function authorityOf(origin: string): string {
  return origin.slice(origin.indexOf('://') + '://'.length);
}
