import { originPattern } from '../../core/config/addresses.ts';
import {
  type KeyText,
  type ParsedKeys,
  list,
  optional,
  single,
} from '../../core/config/ini-key.ts';
import type { LineProblem } from '../../core/config/problem.ts';
import { type ValueParser, choice } from '../../core/config/values.ts';
import type { ParsedTemplates } from './header-lines.ts';

/** A path in which each `*` stands for any text, such as `/assets/*` or `*.js`. */
export const pathPattern: ValueParser<string> = (value) =>
  /^[/*]/.test(value)
    ? { value }
    : { refused: 'write a path that begins with / or *, such as `/assets/*` or `*.js`' };

/** The keys of `[headers.<name>]`; its other lines are header fields. */
export const headersKeys = {
  origin: single(originPattern, '*'),
  path: list(pathPattern, '/*'),
  security: optional(choice('strict')),
};

/** What the reference says about each key. */
export const headersTexts: Readonly<Record<keyof typeof headersKeys, KeyText>> = {
  origin: {
    about:
      'The origin whose answers get the fields; `https://*.example.com` for all ' +
      'subdomains, `*` for every origin.',
    example: 'https://www.example.com',
  },
  path: {
    about:
      'The canonical paths whose answers get the fields; each `*` stands for any text. ' +
      '`/assets/` is that one path, `/assets/*` all below it.',
    example: '/assets/*, *.woff2',
  },
  security: {
    about:
      '`strict` adds the fields that checkers of security ask for, unless a line sets them: a ' +
      'Content-Security-Policy for files of the own origin, `X-Frame-Options`, ' +
      '`Referrer-Policy`, `Permissions-Policy` and `Cross-Origin-Opener-Policy`.',
    example: 'strict',
  },
};

/** A `[headers.<name>]`. */
export interface ParsedHeaderRule {
  readonly keys: ParsedKeys<typeof headersKeys>;
  readonly fields: ParsedTemplates;
}

/** Finds sections that set no field, and fields for a proxy that does not exist. */
export function headerRuleProblems({
  headerRules,
}: {
  readonly headerRules: readonly ParsedHeaderRule[];
}): readonly LineProblem[] {
  return headerRules
    .filter(({ keys, fields }) => keys.values.security === undefined && fields.isEmpty)
    .map(({ keys: { name, line } }) => ({
      line,
      message: `[headers.${name}] has no effect: add a field, such as \`X-Frame-Options = DENY\``,
    }));
}
