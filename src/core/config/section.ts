import { nearestName } from '../values/nearest.ts';
import { foreignSection } from './foreign-words.ts';
import type { SectionKind } from './ini-section.ts';
import { quoted } from './problem.ts';
import { plainName } from './values.ts';

/** What a `[section]` is. */
interface SectionIdentity {
  /** That of its kind, or `variables`. */
  readonly header: string;
  /** The part of its header that the operator chose; empty without such a part. */
  readonly name: string;
}

/** Identifies the section of a header; returns a message for an unknown one. */
export function identifySection(
  header: string,
  kinds: readonly SectionKind[],
): SectionIdentity | string {
  if (header === 'variables' || kinds.some((kind) => kind.header === header && !kind.isNamed)) {
    return { header, name: '' };
  }
  const dot = header.indexOf('.');
  const first = dot === -1 ? header : header.slice(0, dot);
  const named = kinds.filter(({ isNamed, prefix }) => isNamed && prefix === first);
  const owner = named.find(({ tail }) => tail === undefined);
  if (owner === undefined) return unknownSection(header, first, kinds);
  if (dot === -1 || dot === header.length - 1) {
    return `[${first}] needs a name, such as [${first}.main]`;
  }
  return identifyNamed(owner, named, header.slice(dot + 1));
}

function identifyNamed(
  { header, owner: { parseName = plainName }, prefix }: SectionKind,
  named: readonly SectionKind[],
  rest: string,
): SectionIdentity | string {
  const last = named.find(({ tail }) => tail !== undefined && rest.endsWith(`.${tail}`));
  const name = parseName(last?.tail === undefined ? rest : rest.slice(0, -last.tail.length - 1));
  if ('value' in name) return { header: last?.header ?? header, name: name.value };
  const tails = named.flatMap(({ tail }) => tail ?? []);
  const [written = '', tail] = rest.split('.');
  const meant = tail === undefined ? undefined : nearestName(tail, tails);
  const hint =
    meant !== undefined && last === undefined
      ? `; did you mean ${quoted(`[${prefix}.${written}.${meant}]`)}?`
      : `: ${name.refused}`;
  return `unknown section ${quoted(`[${prefix}.${rest}]`)}${hint}`;
}

function unknownSection(header: string, first: string, kinds: readonly SectionKind[]): string {
  const unknown = `unknown section ${quoted(`[${header}]`)}`;
  const foreign = foreignSection(first);
  if (foreign !== undefined) return `${unknown}; write ${foreign}`;
  const prefixes = new Set(kinds.flatMap(({ isNamed, prefix }) => (isNamed ? prefix : [])));
  const [, before = '', after] = /^([a-z]+)[ \t:/-](\S+)$/.exec(header) ?? [];
  if (prefixes.has(before)) {
    return `${unknown}; did you mean ${quoted(`[${before}.${after}]`)}?`;
  }
  const nearest = nearestName(first, [...kinds.map(({ prefix }) => prefix), 'variables']);
  if (nearest === undefined) return unknown;
  const rest = prefixes.has(nearest) ? header.slice(first.length) : '';
  return `${unknown}; did you mean ${quoted(`[${nearest}${rest}]`)}?`;
}
