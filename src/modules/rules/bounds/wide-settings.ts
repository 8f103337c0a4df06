import { affectsWholeOrigin } from '../../proxy/response-fields.ts';
import type { Bounds } from '../../../core/values/bounds.ts';
import { isJsonObject, type Json } from '../../../core/values/json/json.ts';
import type { Rule } from '../rule.ts';

/** A setting of a page rule by which it reaches more than its paths. */
interface WideSetting {
  readonly field: 'headers' | 'enginedata';
  /** Why a bound key may not write it, and what to do, as the end of a sentence. */
  readonly says: string;
}

/**
 * The setting of a write by which a page rule would reach more of its origin than the paths of
 * bounds (docs/design/failures.md#bound-keys); undefined for none, or for bounds without paths.
 * `written` has the fields of the write, `rule` the whole rule after it: a rule that someone else
 * has given such a setting keeps it, but not with another source.
 */
export function wideSetting(
  written: Pick<Partial<Rule>, 'headers' | 'enginedata'> | Readonly<Record<string, Json>>,
  { headers, enginedata }: Pick<Partial<Rule>, 'headers' | 'enginedata'>,
  { paths }: Bounds,
): WideSetting | undefined {
  if (paths === undefined) return undefined;
  const inHeaders = isJsonObject(written.headers) ? wideHeader(headers) : undefined;
  if (inHeaders !== undefined) return { field: 'headers', says: inHeaders };
  const inData = isJsonObject(written.enginedata)
    ? (wideFetch(enginedata) ?? wideBranch(enginedata))
    : undefined;
  return inData === undefined ? undefined : { field: 'enginedata', says: inData };
}

/**
 * Fields of an answer, besides those for browsers, that are about more than its page: cookies of
 * the whole origin, other servers for it, and files of a proxy in front of this server.
 */
const wideFields: ReadonlySet<string> = new Set([
  ...['alt-svc', 'set-cookie', 'x-accel-redirect', 'x-lighttpd-send-file', 'x-sendfile'],
]);

/** Fields of a request with what a browser sends to the whole origin, and no script can read. */
const credentials: ReadonlySet<string> = new Set(['apikey', 'authorization', 'cookie']);

/** Whether a field of an answer, by its lower-case name, is about more than its page. */
export function isWideField(name: string): boolean {
  return wideFields.has(name) || affectsWholeOrigin(name);
}

function wideHeader(headers: Json | undefined): string | undefined {
  if (!isJsonObject(headers)) return undefined;
  const name = Object.keys(headers).find((one) => isWideField(bareName(one)));
  if (name !== undefined) return `${name} is about more than that: leave it out`;
  return credentialVariable(headers);
}

/** What a rule that fetches content would get of its visitors, or send them. */
function wideFetch(enginedata: Json | undefined): string | undefined {
  if (!isJsonObject(enginedata)) return undefined;
  const { as, pass, request_headers: requestHeaders, headers } = enginedata;
  if (as === 'application') {
    return 'an application gets and sets the cookies of the whole origin: leave out `as`';
  }
  const passed = [pass ?? []].flat().find((one) => {
    const name = typeof one === 'string' ? one.toLowerCase() : '';
    return credentials.has(name) || isWideField(name);
  });
  if (typeof passed === 'string') return `${passed} is about more than that: do not pass it`;
  return credentialVariable(requestHeaders) ?? credentialVariable(headers);
}

/** What a branch of a breadcrumb would set for the whole origin. */
function wideBranch(enginedata: Json | undefined): string | undefined {
  const when = isJsonObject(enginedata) ? enginedata.when : undefined;
  for (const branch of Array.isArray(when) ? (when as readonly Json[]) : []) {
    if (!isJsonObject(branch)) continue;
    if (branch.cookies !== undefined) return 'cookies are about more than that: leave them out';
    const says = wideHeader(branch.headers);
    if (says !== undefined) return says;
  }
  return undefined;
}

/** Names a variable with a credential in the values of header fields. */
function credentialVariable(headers: Json | undefined): string | undefined {
  if (!isJsonObject(headers)) return undefined;
  const text = JSON.stringify(Object.values(headers));
  const [variable, name = ''] = /request\.header\.(authorization|cookie)\b/i.exec(text) ?? [];
  return variable && `${name} belongs to the whole origin: leave out \${${variable}}`;
}

/** The name of a field, without the mark of one that comes again. */
function bareName(name: string): string {
  return name.replace(/\[\]$/, '').toLowerCase();
}
