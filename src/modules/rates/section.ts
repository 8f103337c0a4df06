import { cidr } from '../../core/config/addresses.ts';
import { fieldName } from '../../core/config/headers.ts';
import { type FieldsOf, list, optional, single, originKey } from '../../core/config/ini-key.ts';
import {
  iniSection,
  type ParsedIni,
  type ParsedSection,
  problemOf,
} from '../../core/config/ini-section.ts';
import type { LineProblem } from '../../core/config/problem.ts';
import { type ValueParser, wholeNumber } from '../../core/config/values.ts';
import { pathPattern } from '../headers/section.ts';
import { providerNames } from '../login/section.ts';
import { visitorSection } from '../visitors/section.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    readonly rates: readonly RateConfig[];
  }
  /** `[rate.<name>]`: how often clients may ask for some paths. */
  interface RateConfig extends Omit<FieldsOf<typeof rateKeys>, 'rate'> {
    readonly name: string;
    readonly rate: RequestRate;
  }
}

/** The largest number of requests, and of requests at once, in a rate. */
const rateCountMax = 1_000_000_000;
const rateBurstMax = 1_000_000;

/** A number of requests in a period. */
interface RequestRate {
  readonly count: number;
  readonly periodMs: number;
}

const periods = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A rate such as `100/m`: requests in a second, minute, hour or day. */
const requestRate: ValueParser<RequestRate> = (text) => {
  const [, digits = '', unit] = /^(\d{1,10})\/([smhd])$/.exec(text) ?? [];
  const count = Number(digits);
  return unit === undefined || count > rateCountMax
    ? { refused: 'write a number of requests in a second, minute, hour or day, such as `100/m`' }
    : { value: { count, periodMs: periods[unit as keyof typeof periods] } };
};

function rateText({ count, periodMs }: RequestRate): string {
  const unit = Object.entries(periods).find(([, ms]) => ms === periodMs)?.[0] ?? '';
  return `${count}/${unit}`;
}

/** What has a rate of its own: `address`, `user`, `key`, or `field:` with the name of a field. */
const counted: ValueParser<string> = (text) => {
  if (['address', 'user', 'key'].includes(text)) return { value: text };
  const name = text.startsWith('field:') ? fieldName(text.slice('field:'.length)) : undefined;
  return name === undefined || 'refused' in name
    ? { refused: 'write `address`, `user`, `key`, or a field such as `field:X-Api-Key`' }
    : { value: `field:${name.value.toLowerCase()}` };
};

/** The keys of `[rate.<name>]`. */
const rateKeys = {
  origin: originKey('whose host is limited, with any scheme and port'),
  path: list(pathPattern, '/*', {
    about:
      'The canonical paths that are limited; each `*` stands for any text, and a last `/` for ' +
      'all below it. As in `[access.<name>]`, upper and lower case and repeated slashes make no ' +
      'difference.',
    example: '/api/*, /search',
  }),
  except: list(pathPattern, '', { about: 'Paths that are not limited.', example: '/api/health' }),
  rate: optional(requestRate, {
    write: (rate: RequestRate | undefined) => (rate === undefined ? '' : rateText(rate)),
    about: 'How many requests each client may send in a second (`s`), minute, hour or day.',
    example: '100/m',
  }),
  burst: optional(wholeNumber(1, rateBurstMax), {
    about:
      'How many requests a client may send at once that has sent none for a while. By default, ' +
      'those of `rate`.',
    example: '20',
  }),
  by: single(counted, 'address', {
    about:
      'What has a rate of its own: an `address` (of IPv6, the first 64 bits), a signed-in ' +
      '`user`, an API `key`, or the value of a field, such as `field:X-Api-Key`. A request ' +
      'without user, key or field counts for its address.',
    example: 'key',
  }),
  exempt: list(cidr, '', { about: 'Networks that are not limited.', example: '10.0.0.0/8' }),
  status: single(wholeNumber(400, 599), '429', {
    about: 'The status of a refusal.',
    example: '503',
  }),
};

/** `[rate.<name>]`: how often clients may ask for some paths. */
export const rateSection = iniSection({
  header: 'rate.<name>',
  keys: rateKeys,
  place: 'rates',
  since: '0.2',
  example: { name: 'api', lines: { path: '/api/*', rate: '100/m' } },
  check: rateProblems,
});

/** Finds rates without a number, and those of users that the server cannot know. */
function rateProblems(
  rates: readonly ParsedSection<typeof rateKeys>[],
  ini: ParsedIni,
): readonly LineProblem[] {
  const { user_header: header, jwt_jwks: keys } = ini.one(visitorSection).values;
  const knowsUsers = (header ?? keys) !== undefined || providerNames(ini).length > 0;
  return rates.flatMap((section) => {
    const { name, line, isValid, values } = section;
    if (!isValid) return [];
    if (values.rate === undefined) {
      return [
        { line, message: `[rate.${name}] has no \`rate\`: add one, such as \`rate = 100/m\`` },
      ];
    }
    if (values.path.length === 0) {
      return [problemOf(section, 'path', `[rate.${name}] limits no path`)];
    }
    if (values.by !== 'user' || knowsUsers) return [];
    const needed = '`issuer` in [login], or `user_header` or `jwt_jwks` in [auth]';
    return [problemOf(section, 'by', `\`by = user\` needs ${needed}`)];
  });
}
