import { type FieldsOf, list, optional, originKey } from '../../core/config/ini-key.ts';
import { iniSection } from '../../core/config/ini-section.ts';
import { type ValueParser, choice } from '../../core/config/values.ts';
import { answerFields } from './header-lines.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    /** In the order of the file. */
    readonly headers: readonly HeadersConfig[];
  }
}

/** `[headers.<name>]`: fields of answers. */
interface HeadersConfig extends FieldsOf<typeof headersKeys> {
  readonly name: string;
  /** Name, template, name, template …; a name that ends with `[]` adds a field. */
  readonly fields: readonly string[];
}

/** A path in which each `*` stands for any text, such as `/assets/*` or `*.js`. */
export const pathPattern: ValueParser<string> = (value) =>
  /^[/*]/.test(value)
    ? { value }
    : { refused: 'write a path that begins with / or *, such as `/assets/*` or `*.js`' };

/** The keys of `[headers.<name>]`; its other lines are header fields. */
const headersKeys = {
  origin: originKey('whose answers get the fields'),
  path: list(pathPattern, '/*', {
    about:
      'The canonical paths whose answers get the fields; each `*` stands for any text. ' +
      '`/assets/` is that one path, `/assets/*` all below it.',
    example: '/assets/*, *.woff2',
  }),
  security: optional(choice('strict'), {
    about:
      '`strict` adds the fields that checkers of security ask for, unless a line sets them: a ' +
      'Content-Security-Policy for files of the own origin, `X-Frame-Options`, ' +
      '`Referrer-Policy`, `Permissions-Policy` and `Cross-Origin-Opener-Policy`.',
    example: 'strict',
  }),
};

/** `[headers.<name>]`: fields of answers. */
export const headersSection = iniSection({
  header: 'headers.<name>',
  keys: headersKeys,
  lines: answerFields('fields'),
  place: 'headers',
  since: '0.2',
  about: 'Header fields of answers. All other lines of the section are fields.',
  example: { name: 'all', lines: { 'X-Robots-Tag': 'noindex' } },
  check: (rules) =>
    rules.flatMap(({ name, line, values, isEmpty }) => {
      if (values.security !== undefined || !isEmpty) return [];
      const advice = 'add a field, such as `X-Frame-Options = DENY`';
      return [{ line, message: `[headers.${name}] has no effect: ${advice}` }];
    }),
});
