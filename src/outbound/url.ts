import { Failure } from '../model/failure.ts';

/**
 * Parses the URL of another server (docs/design/webhooks.md#addresses, Addresses): absolute, http
 * or https, with a host, without a user and password, without white space or control characters.
 * Throws `invalid` otherwise; the message does not repeat the URL.
 */
export function outboundUrl(text: string): URL {
  // The URL parser would mend backslashes, missing slashes and white space: what it means must be
  // what it says.
  if (
    !/^https?:\/\/[^/?#\\@]+(?:[/?#]|$)/i.test(text) ||
    /[^\x21-\x5b\x5d-\x7e\u{a1}-\u{10ffff}]/u.test(text)
  ) {
    throw notOutbound();
  }
  if (!URL.canParse(text)) throw notOutbound();
  return new URL(text);
}

function notOutbound(): Failure {
  return new Failure('invalid', 'A URL has to read http:// or https://, a host, and no user.');
}
