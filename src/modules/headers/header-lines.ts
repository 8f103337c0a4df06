import {
  isAnswerVariable,
  isTemplateVariable,
  variableWords,
} from '../../core/http/field-template.ts';
import { customHeadersMax } from '../../core/config/limits.ts';
import { iniTemplateLine } from '../../core/config/describe.ts';
import { duplicateMessage } from '../../core/config/entry.ts';
import {
  answerFieldName,
  expiresRefusal,
  fieldToken,
  fieldValue,
} from '../../core/config/headers.ts';
import type { FieldContext, FieldLines, FieldSection } from '../../core/config/ini-section.ts';
import { quoted } from '../../core/config/problem.ts';
import type { Entry } from '../../core/config/scan.ts';
import { substituteInTemplate, type Environment } from '../../core/config/variables.ts';
import type { ValueParser } from '../../core/config/values.ts';

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
 * The lines of `[proxy.<name>.request_headers]`: each sets a field of the requests to the
 * application. Values may have the variables of a request (http/field-template.ts).
 */
export const requestFields: FieldLines = {
  member: 'requestHeaders',
  parse: (section, context) => parseFieldLines(section, context, requestFieldName),
  write: templateLines,
};

/**
 * The lines of `[headers.<name>]` and `[proxy.<name>.headers]`, which change the fields of answers.
 * `name[]` adds a field; an empty template removes the field.
 */
export function answerFields(member: string): FieldLines {
  return {
    member,
    parse: (section, context) => parseFieldLines(section, context, answerFieldName),
    write: templateLines,
  };
}

/** Lines of name and template, whose variables stay as they are. */
function templateLines(fields: readonly string[]): string {
  return fields
    .map((name, at) => (at % 2 === 0 ? iniTemplateLine(name, fields[at + 1] ?? '') : ''))
    .join('');
}

function parseFieldLines(
  { title, line, entries }: FieldSection,
  { env, problems }: FieldContext,
  parseName: ValueParser<string>,
): readonly string[] {
  const canRepeat = parseName === answerFieldName;
  const fields: string[] = [];
  const seen = new Map<string, number>();
  for (const entry of entries) {
    const lowerCase = entry.key.toLowerCase();
    const earlierLine = seen.get(lowerCase);
    const parsed = parseTemplateField(entry, parseName, env);
    const isTwice = canRepeat
      ? earlierLine !== undefined && !entry.repeated
      : earlierLine !== undefined || entry.repeated;
    const refused = isTwice
      ? duplicateMessage(entry.key, { earlierLine: earlierLine ?? entry.line, isList: canRepeat })
      : 'refused' in parsed && parsed.refused;
    if (typeof refused === 'string') problems.push({ line: entry.line, message: refused });
    else if ('value' in parsed) {
      fields.push(entry.repeated ? `${entry.key}[]` : entry.key, parsed.value);
    }
    if (earlierLine === undefined) seen.set(lowerCase, entry.line);
  }
  if (fields.length / 2 > customHeadersMax) {
    const message = `${title} has more than ${customHeadersMax} fields: remove some`;
    problems.push({ line, message });
  }
  return fields;
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
  const isVariable = parseName === answerFieldName ? isAnswerVariable : isTemplateVariable;
  const template = substituteInTemplate(text, env, isVariable);
  if ('refused' in template) {
    const known = `; of a request there are ${variableWords}`;
    const isMissing = template.refused.includes('is not set');
    return { refused: `the value of ${quoted(key)}: ${template.refused}${isMissing ? known : ''}` };
  }
  const value = fieldValue(template.value);
  const isExpires = parseName === answerFieldName && key.toLowerCase() === 'expires';
  const expires = isExpires ? expiresRefusal(template.value.trim()) : undefined;
  if ('value' in value && expires === undefined) return value;
  const why = 'refused' in value ? value.refused : expires;
  return { refused: `${quoted(key)} cannot be ${quoted(template.value)}: ${why}` };
}
