import type { Fields } from '../../core/http/request.ts';
import type { FetchPlan } from '../proxy/fetch-plan.ts';
import { forwardsField } from '../proxy/request-fields.ts';

/**
 * What the cache does with a request that has a field by which applications answer something else
 * than its method and URL name, most often without a Vary: one such request of a stranger would
 * decide what all others get.
 *
 * - `bypass`: the request is another one. The cache neither answers it nor stores its answer.
 * - `variant`: the page is the same one in another shape. Its answer is only for requests with the
 *   same values, as if Vary named the field.
 */
type Effect = 'bypass' | 'variant';

/**
 * Fields that applications and frameworks read, by lower-case name. Not here: those that no source
 * gets from a client (Forwarded, X-Forwarded-*, X-Real-IP), credentials, and what a response has to
 * name in Vary because clients send too many values of it, such as Accept, User-Agent, and the
 * addresses in True-Client-IP and its sisters.
 */
const effects: ReadonlyMap<string, Effect> = new Map([
  // Another method: OData, Google's APIs, Rack, Symfony, Express.
  ...named('bypass', 'x-http-method x-http-method-override x-method-override'),
  // Another path: URL Rewrite of IIS, Symfony, Laminas, Azure, Envoy, nginx for authorization.
  ...named('bypass', 'x-original-url x-original-uri x-rewrite-url x-override-url'),
  ...named('bypass', 'x-http-destinationurl x-ms-original-url x-envoy-original-path'),
  // Another path or status, or no middleware: inside Next.js and its hosts.
  ...named('bypass', 'x-invoke-path x-invoke-query x-invoke-status x-invoke-error x-invoke-output'),
  ...named('bypass', 'x-matched-path x-now-route-matches x-middleware-subrequest'),
  // The name of a file in place of the page (Rack::Sendfile); its source (WebDAV of IIS).
  ...named('bypass', 'x-sendfile-type x-accel-mapping translate'),
  // The host, scheme, port or prefix that links and redirects of the page begin with.
  ...named('variant', 'x-host x-original-host x-http-host-override'),
  ...named('variant', 'x-envoy-original-host x-scheme x-url-scheme x-original-scheme'),
  ...named('variant', 'x-original-proto x-original-port front-end-https x-arr-ssl'),
  ...named('variant', 'cloudfront-forwarded-proto x-script-name x-original-prefix'),
  // A part of the page, or its data: jQuery, PJAX, htmx, Turbo, Inertia, Next.js.
  ...named('variant', 'x-requested-with x-pjax x-pjax-container hx-request hx-boosted hx-target'),
  ...named('variant', 'turbo-frame x-inertia rsc next-router-prefetch x-nextjs-data'),
  // An empty page in answer to a prefetch.
  ...named('variant', 'x-middleware-prefetch purpose sec-purpose x-purpose x-moz'),
]);

function named(effect: Effect, names: string): readonly (readonly [string, Effect])[] {
  return names.split(' ').map((name) => [name, effect] as const);
}

/** The overriding fields that a rule forwards to its source, by lower-case name. */
export type OverridingFields = ReadonlyMap<string, Effect>;

/** The fields with an effect that a rule forwards, also in spellings that its `pass` names. */
export function overridingFields(plan: FetchPlan): OverridingFields {
  const names = [...effects.keys(), ...plan.pass].filter((name) => forwardsField(plan, name));
  const known = new Map<string, Effect>();
  for (const name of names) {
    const effect = effects.get(name.replaceAll(/[^a-z0-9]/g, '-'));
    if (effect !== undefined) known.set(name, effect);
  }
  return known;
}

/** The effect of the overriding fields of one request. */
interface Overrides {
  /** The name of a field by which the request is another one than its method and URL name. */
  readonly bypass: string | undefined;
  /** Names and values of the fields that choose a variant; empty for an ordinary request. */
  readonly variant: string;
}

const none: Overrides = { bypass: undefined, variant: '' };

/** Reads the overriding fields of a request. Most requests have none. */
export function overridesOf(fields: Fields, overriding: OverridingFields): Overrides {
  const variants: string[] = [];
  for (const name in fields) {
    const value = fields[name];
    const effect = value === undefined ? undefined : overriding.get(name);
    if (effect === 'bypass') return { bypass: name, variant: '' };
    if (effect === 'variant') variants.push(`${name}: ${value}\n`);
  }
  return variants.length === 0 ? none : { bypass: undefined, variant: variants.sort().join('') };
}
