import { asQueryValue } from '../values/path.ts';
import { asPathValue, queryPairs } from './query.ts';

/** What the variables of a target stand for, percent-encoded. */
export interface TargetValues {
  /** What the `*` of a path stands for. */
  readonly splat: string;
  readonly path: string;
  readonly query: string;
  /** The authority of the request's origin. */
  readonly host: string;
}

const variable = /\{(splat|path|query|host|query\.[^{}]*)\}/g;

/** The names in a target that stand for a value of the request. */
export function targetVariables(target: string): readonly string[] {
  return Array.from(target.matchAll(variable), ([, name = '']) => name);
}

/**
 * A target with the values of a request for its variables; other braces stay. Behind the `?` or `#`
 * of the target a value is one value of the query: no `&` of a path adds a parameter. Only
 * `{query}` is a whole query. A path may begin with two slashes, which begin a host (RFC 3986
 * §4.2): the caller has to prevent that.
 */
export function fillTarget(target: string, values: TargetValues): string {
  const [beforeQuery = ''] = target.split(/[?#]/, 1);
  return target.replace(variable, (_whole, name: string, at: number) => {
    if (name === 'query') return values.query;
    const value = valueOf(name, values);
    return at < beforeQuery.length ? value : asQueryValue(value);
  });
}

function valueOf(name: string, values: TargetValues): string {
  if (!name.startsWith('query.')) return values[name as keyof TargetValues];
  const wanted = name.slice('query.'.length);
  const found = queryPairs(values.query).find((pair) => pair.name === wanted);
  return asPathValue(found?.value ?? '');
}

/** A target with a query that is added to its own, before its fragment. */
export function withQuery(target: string, query: string): string {
  if (query === '') return target;
  const [before = '', ...fragment] = target.split('#');
  return [`${before}${before.includes('?') ? '&' : '?'}${query}`, ...fragment].join('#');
}
