/** What every delivery says itself, and what belongs to the framing of a message (RFC 9112). */
const reserved: ReadonlySet<string> = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'webhook-id',
  'webhook-signature',
  'webhook-timestamp',
  'x-service-hmac',
]);

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const content = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;

/**
 * Whether a hook may add a field to its deliveries (docs/design/webhooks.md#registration): one that
 * HTTP carries unchanged (RFC 9110 §5.1, §5.5) and that Waymark does not say itself.
 */
export function isHookHeader(name: string, value: string): boolean {
  return hookHeaderMistake(name, value) === undefined;
}

/** Why a hook may not add a field to its deliveries, as a sentence; undefined where it may. */
export function hookHeaderMistake(name: string, value: string): string | undefined {
  if (!token.test(name)) return 'The name of a header field has 1 to 128 letters, digits, or -_.';
  if (reserved.has(name.toLowerCase())) return 'Waymark sets this header field itself.';
  if (!content.test(value)) return 'The value has to be visible ASCII, in one line.';
  return undefined;
}
