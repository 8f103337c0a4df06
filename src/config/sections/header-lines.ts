import { isTemplateVariable, variableWords } from '../../http/field-template.ts';
import { customHeadersMax } from '../limits.ts';
import { duplicateMessage } from '../entry.ts';
import { fieldToken, fieldValue } from '../headers.ts';
import { quoted, type LineProblem } from '../problem.ts';
import type { Entry } from '../scan.ts';
import { substituteInTemplate, type Environment } from '../variables.ts';
import type { ValueParser } from '../values.ts';

/** A section whose keys are the names of header fields. */
export interface ParsedTemplates {
  readonly name: string;
  readonly line: number;
  /** Name, template, name, template …; an empty template removes the field. */
  readonly fields: readonly string[];
}

/** Fields of a request that frame the message, or that Waymark makes itself. */
const notInRequest: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'via',
]);

const requestFieldName: ValueParser<string> = (value) => {
  const name = fieldToken(value);
  if ('refused' in name) return name;
  if (name.value === 'host') return { refused: 'use the key `host` of the proxy' };
  if (notInRequest.has(name.value)) return { refused: 'the server sets that field itself' };
  return { value };
};

/**
 * Parses the lines of `[proxy.<name>.request_headers]`: each sets a field of the requests to the
 * application. Values may have the variables of a request (http/field-template.ts).
 */
export function parseRequestHeaders(
  section: { readonly name: string; readonly line: number; readonly entries: readonly Entry[] },
  { env, problems }: { readonly env: Environment; readonly problems: LineProblem[] },
): ParsedTemplates {
  const { name, line, entries } = section;
  const fields: string[] = [];
  const seen = new Map<string, number>();
  for (const entry of entries) {
    const lowerCase = entry.key.toLowerCase();
    const earlierLine = seen.get(lowerCase);
    const parsed = parseTemplateField(entry, requestFieldName, env);
    const isTwice = earlierLine !== undefined || entry.repeated;
    const refused = isTwice
      ? duplicateMessage(entry.key, { earlierLine: earlierLine ?? entry.line, isList: false })
      : 'refused' in parsed && parsed.refused;
    if (typeof refused === 'string') problems.push({ line: entry.line, message: refused });
    else if ('value' in parsed) fields.push(entry.key, parsed.value);
    if (earlierLine === undefined) seen.set(lowerCase, entry.line);
  }
  if (fields.length / 2 > customHeadersMax) {
    const message = `[proxy.${name}.request_headers] has more than ${customHeadersMax} fields`;
    problems.push({ line, message: `${message}: remove some` });
  }
  return { name, line, fields };
}

/** Parses one line; `refused` is a complete message about it. */
function parseTemplateField(
  { key, text, isCut }: Entry,
  parseName: ValueParser<string>,
  env: Environment,
): { readonly value: string } | { readonly refused: string } {
  const name = parseName(key);
  if ('refused' in name) return { refused: `${quoted(key)}: ${name.refused}` };
  if (isCut) {
    const why = 'ends at a ; or #, which begins a comment: put the value in quotes';
    return { refused: `the value of ${quoted(key)} ${why}` };
  }
  const template = substituteInTemplate(text, env, isTemplateVariable);
  if ('refused' in template) {
    const known = `; of a request there are ${variableWords}`;
    const isMissing = template.refused.includes('is not set');
    return { refused: `the value of ${quoted(key)}: ${template.refused}${isMissing ? known : ''}` };
  }
  const value = fieldValue(template.value);
  if ('value' in value) return value;
  return { refused: `${quoted(key)} cannot be ${quoted(template.value)}: ${value.refused}` };
}
