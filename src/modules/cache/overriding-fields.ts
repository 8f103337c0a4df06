import { fieldOfVariable } from '../../core/http/field-template.ts';
import { addressFields } from '../../core/http/reading/forwarded.ts';
import type { FetchPlan } from '../proxy/fetch-plan.ts';
import { type ForwardedRequest, forwardsField, isAddressOf } from '../proxy/request-fields.ts';

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
 * gets from a client (Forwarded, X-Forwarded-*, X-Real-IP, another address than that of the client
 * in True-Client-IP and its sisters), credentials, and what a response has to name in Vary because
 * clients send too many values of it, such as Accept, User-Agent, and the address of the client.
 */
const effects: ReadonlyMap<string, Effect | undefined> = new Map([
  // Another method: OData, Google's APIs, Rack, Symfony, Express, Traefik.
  ...named('bypass', `x-http-method x-http-method-override x-method-override x-method`),
  ...named('bypass', `x-original-method x-ajax-real-method real-method request-method`),
  // Another path: URL Rewrite of IIS, Symfony, Laminas, Azure, Envoy, nginx for authorization, CGI.
  ...named('bypass', `x-original-url x-original-uri x-rewrite-url x-override-url x-uri x-cf-url`),
  ...named('bypass', `x-http-destinationurl x-ms-original-url x-envoy-original-path uri url`),
  ...named('bypass', `x-http-path-override x-original-http-command x-proxy-url request-uri path`),
  ...named('bypass', `x-request-uri x-ning-request-uri unencoded-url orig-path-info path-info`),
  ...named('bypass', `query-string http-url context-path base-url destination`),
  // Another path or status, or no middleware: inside Next.js, React Router and their hosts.
  ...named('bypass', `x-matched-path x-now-route-matches x-react-router-spa-mode`),
  ...named('bypass', `x-react-router-prerender-data`),
  // The name of a file in place of the page (Rack::Sendfile); its source (WebDAV of IIS).
  ...named('bypass', `x-sendfile-type x-accel-mapping translate`),
  // The host, scheme, port or prefix that links and redirects of the page begin with.
  ...named('variant', `x-host x-original-host x-http-host-override x-forward-host forwarded-host`),
  ...named('variant', `x-envoy-original-host x-server-name x-subdomain http-host host-name`),
  ...named('variant', `x-scheme x-url-scheme x-original-scheme x-orchestra-scheme scheme`),
  ...named('variant', `x-original-proto x-original-port front-end-https x-arr-ssl cf-visitor`),
  ...named('variant', `x-forward-proto x-originally-forwarded-proto forwarded-proto x-https https`),
  ...named('variant', `forwarded-port x-server-port fastly-ssl x-ssl ssl ssl-https https-from-lb`),
  ...named('variant', `ssl-offloaded x-remote-protocol x-nfsn-https x-script-name script-name`),
  ...named('variant', `cloudfront-forwarded-proto x-original-prefix x-amzn-remapped-host`),
  // A part of the page, or its data: jQuery, PJAX, htmx, Turbo, Inertia, Next.js and others.
  ...named('variant', `x-requested-with x-pjax x-pjax-container hx-request hx-boosted hx-target`),
  ...named('variant', `hx-trigger hx-history-restore-request turbo-frame rsc next-router-prefetch`),
  ...named('variant', `x-inertia x-inertia-partial-component x-inertia-partial-data x-nextjs-data`),
  ...named('variant', `x-up-target x-up-version x-livewire x-sveltekit-invalidated`),
  // An empty page in answer to a prefetch.
  ...named('variant', `x-middleware-prefetch purpose sec-purpose x-purpose x-moz`),
  // Another form, version, language or place, of which clients send few values.
  ...named('variant', `prefer accept-version api-version x-api-version x-response-format x-format`),
  ...named('variant', `x-locale x-lang x-language x-currency x-country x-country-code cf-region`),
  ...named('variant', `cf-ipcountry cf-ipcity cf-ipcontinent cf-region-code cf-timezone`),
  ...named('variant', `x-geo-country x-geoip-country x-nf-geo x-akamai-edgescape`),
  ...named('variant', `x-appengine-country x-appengine-region x-appengine-city`),
  // The page for telephones: `WURFL`, Mobile Detect, and proxies that pack pages.
  ...named('variant', `x-wap-profile profile wap-connection x-device x-device-type x-ua-device`),
  ...named('variant', `x-operamini-phone x-operamini-phone-ua x-ucbrowser-device-ua x-mobile-ua`),
  ...named('variant', `x-device-user-agent x-original-user-agent x-user-agent device-stock-ua`),
  ...named('variant', `x-skyfire-phone x-bolt-phone-ua ua-os ua-cpu ua-pixels`),
  // What only developers see.
  ...named('variant', `debug x-debug x-debug-test x-wikimedia-debug x-environment-override`),
  ...named('variant', `app-env mod-env`),
  // Load balancers number each request by these, and nothing depends on them.
  ['x-amz-cf-id', undefined],
  ['x-amzn-trace-id', undefined],
]);

function named(effect: Effect, names: string): readonly (readonly [string, Effect])[] {
  return names.split(' ').map((name) => [name, effect] as const);
}

/** The interfaces of object stores and identities of their clouds; the inside of frameworks. */
const bypassed = /^x-(?:amzn?|astro|goog|invoke|middleware|ms|myqee-system)-/;

/** What CDNs say of the place and the device of a client. */
const varied = /^(?:cloudfront-(?:is|viewer)|x-vercel-ip)-/;

/** The names that may match one of these, or are a spelling of another name for CGI. */
const unusual = /^(?:x-[agimv]|cloudfront-)|[^a-z0-9-]/;

/** The effect of a field by its lower-case name; undefined for most. */
function effectOf(name: string): Effect | undefined {
  if (effects.has(name)) return effects.get(name);
  if (!unusual.test(name)) return undefined;
  const plain = name.replaceAll(/[^a-z0-9]/g, '-');
  if (effects.has(plain)) return effects.get(plain);
  if (bypassed.test(plain)) return 'bypass';
  return varied.test(plain) ? 'variant' : undefined;
}

/** A field that a rule makes of one of the client, so that the client decides its value. */
export interface MadeField {
  readonly name: string;
  readonly effect: Effect;
  readonly value: (request: ForwardedRequest) => string | undefined;
}

/** The fields with an effect that a rule makes of those of the client, by its variables. */
export function madeFields({ headers }: FetchPlan): readonly MadeField[] {
  return [...headers].flatMap(([name, { variables, value }]) => {
    const taken = variables.flatMap((variable) => fieldOfVariable(variable) ?? []);
    if (taken.length === 0) return [];
    const effects = [name, ...taken].map(effectOf);
    const effect = effects.includes('bypass') ? 'bypass' : effects.find((one) => one);
    return effect === undefined ? [] : [{ name, effect, value }];
  });
}

/** The effect of the overriding fields of one request. */
interface Overrides {
  /** The name of a field by which the request is another one than its method and URL name. */
  readonly bypass: string | undefined;
  /** Names and values of the fields that choose a variant; empty for an ordinary request. */
  readonly variant: string;
}

const none: Overrides = { bypass: undefined, variant: '' };

/**
 * Reads the overriding fields of a request that a rule forwards. Most requests have none. A wrong
 * address that `pass` lets through is for its client alone. Those that only a trusted proxy may
 * send are credentials.
 */
export function overridesOf(
  request: ForwardedRequest,
  {
    fetch: plan,
    credentialFields,
    made,
  }: {
    readonly fetch: FetchPlan;
    readonly credentialFields: readonly string[];
    readonly made: readonly MadeField[];
  },
): Overrides {
  const { fields, address } = request;
  const variants: string[] = [];
  for (const { name, effect, value } of made) {
    const sent = value(request);
    if (sent === undefined) continue;
    if (effect === 'bypass') return { bypass: name, variant: '' };
    variants.push(`${name}: ${sent}\n`);
  }
  for (const name in fields) {
    const value = fields[name];
    if (value === undefined || credentialFields.includes(name)) continue;
    const isLie = plan.pass.size > 0 && plan.pass.has(name) && isOtherAddress(name, value, address);
    const effect = isLie ? 'bypass' : effectOf(name);
    if (effect === undefined || !forwardsField(plan, name)) continue;
    if (effect === 'bypass') return { bypass: name, variant: '' };
    variants.push(`${name}: ${value}\n`);
  }
  return variants.length === 0 ? none : { bypass: undefined, variant: variants.sort().join('') };
}

function isOtherAddress(name: string, value: string, address: string): boolean {
  const isAddress = addressFields.has(name.replaceAll(/[^a-z0-9]/g, '-'));
  return isAddress && !isAddressOf(address, value);
}
