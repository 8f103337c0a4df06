import { nearestName } from '../values/nearest.ts';
import { foreignSection } from './foreign-words.ts';
import { quoted } from './problem.ts';
import { sectionNames, sections, type SectionKind } from './schema.ts';

/** The kind of a `[section]`, and the part of its name that the operator chose. */
export interface SectionIdentity {
  readonly kind: SectionKind | FieldSectionKind | 'variables';
  /** Empty for a section without such a part. */
  readonly name: string;
}

/** The kinds of section that have header fields of another section. */
type FieldSectionKind =
  | 'disk.<name>.headers'
  | 'proxy.<name>.headers'
  | 'proxy.<name>.request_headers';

const prefixes = [
  'tls',
  'disk',
  'proxy',
  'headers',
  'redirect',
  'rewrite',
  'access',
  'login',
  'log',
  'rate',
  'engine',
  'table',
  'event',
] as const;
/** The last parts of the names of such sections, by the first part. */
const fieldSections: Readonly<Partial<Record<(typeof prefixes)[number], readonly string[]>>> = {
  disk: ['headers'],
  proxy: ['request_headers', 'headers'],
};

const kinds = Object.keys(sections) as SectionKind[];

/** The header of the section with the certificate of a host, or with the default certificate. */
export function tlsSection(host: string | undefined): string {
  return host === undefined ? '[tls]' : `[tls.${host}]`;
}

/** Identifies the section of a header; returns a message for an unknown one. */
export function identifySection(header: string): SectionIdentity | string {
  const plain = kinds.find((kind) => kind === header);
  if (plain !== undefined && !plain.includes('<')) return { kind: plain, name: '' };
  if (header === 'variables') return { kind: header, name: '' };
  const dot = header.indexOf('.');
  const first = dot === -1 ? header : header.slice(0, dot);
  const prefix = prefixes.find((name) => name === first);
  if (prefix === undefined) return unknownSection(header, first, dot !== -1);
  if (dot === -1 || dot === header.length - 1) {
    return `[${prefix}] needs a name, such as [${prefix}.main]`;
  }
  return identifyNamed(prefix, header.slice(dot + 1));
}

function identifyNamed(prefix: (typeof prefixes)[number], rest: string): SectionIdentity | string {
  const tails = fieldSections[prefix] ?? [];
  const last = tails.find((tail) => rest.endsWith(`.${tail}`));
  const name = sectionNames[prefix](last === undefined ? rest : rest.slice(0, -last.length - 1));
  if ('refused' in name) {
    const [owner = '', tail] = rest.split('.');
    const meant = tail === undefined ? undefined : nearestName(tail, tails);
    const hint =
      meant !== undefined && last === undefined
        ? `; did you mean ${quoted(`[${prefix}.${owner}.${meant}]`)}?`
        : `: ${name.refused}`;
    return `unknown section ${quoted(`[${prefix}.${rest}]`)}${hint}`;
  }
  // The table above has the tails of these kinds only.
  if (last !== undefined) {
    return { kind: `${prefix}.<name>.${last}` as FieldSectionKind, name: name.value };
  }
  const kind = kinds.find((one) => one.startsWith(`${prefix}.`));
  if (kind === undefined) throw new TypeError(`no schema for [${prefix}.…]`);
  return { kind, name: name.value };
}

function unknownSection(header: string, first: string, isNamed: boolean): string {
  const foreign = foreignSection(first);
  if (foreign !== undefined) return `unknown section ${quoted(`[${header}]`)}; write ${foreign}`;
  const [, before, after] = /^([a-z]+)[ \t:/-](\S+)$/.exec(header) ?? [];
  if (prefixes.some((prefix) => prefix === before)) {
    const meant = quoted(`[${before}.${after}]`);
    return `unknown section ${quoted(`[${header}]`)}; did you mean ${meant}?`;
  }
  const names = [...kinds.map((kind) => kind.split('.')[0] ?? kind), 'variables'];
  const nearest = nearestName(first, names);
  const isPrefix = prefixes.some((prefix) => prefix === nearest);
  const rest = isNamed && isPrefix ? header.slice(first.length) : '';
  const hint = nearest === undefined ? '' : `; did you mean ${quoted(`[${nearest}${rest}]`)}?`;
  return `unknown section ${quoted(`[${header}]`)}${hint}`;
}
