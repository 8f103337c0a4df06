import { Failure } from '../values/failure.ts';

/**
 * Parses the URL of another server (docs/design/webhooks.md#addresses): absolute, http or https,
 * with a host, without user and password, without white space and control characters. Throws
 * `invalid` for any other URL; the message does not repeat it.
 */
export function outboundUrl(text: string): URL {
  // A unix socket in the way of nginx would be the host `unix`.
  // The URL parser would correct backslashes, missing slashes and white space, and so give the URL
  // another meaning than a reader sees.
  if (
    !/^https?:\/\/[^/?#\\@]+(?:[/?#]|$)/i.test(text) ||
    /^https?:\/\/unix:(?!\d)/i.test(text) ||
    /[^\x21-\x5b\x5d-\x7e\u{a1}-\u{10ffff}]/u.test(text)
  ) {
    throw notOutbound();
  }
  if (!URL.canParse(text)) throw notOutbound();
  return new URL(text);
}

function notOutbound(): Failure {
  return new Failure('invalid', 'Write a URL with http:// or https:// and a host, without a user.');
}
