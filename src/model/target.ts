import { breadcrumbKeyCharactersMax } from './limits.ts';

/**
 * Whether a text can be the target of a breadcrumb (docs/design/rendering.md#breadcrumbs): an
 * http(s) URL without a user, a path on this site, or `key:` with another breadcrumb's key; never a
 * script. A `*` may stand at its end, behind the host.
 */
export function isTarget(text: string): boolean {
  if (text.length > targetCharactersMax) return false;
  if (text.startsWith('key:')) return isBreadcrumbKey(text.slice('key:'.length));
  if (/[\0-\x20\x7f\\]/.test(text)) return false;
  if (text.startsWith('/')) return !text.startsWith('//');
  if (!/^https?:\/\/[^/?#*]+(?:[/?#]|$)/i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === '' && password === '';
}

/**
 * Whether a text can be a breadcrumb's key: 1 to 512 characters, none of them a control character.
 */
export function isBreadcrumbKey(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  return text !== '' && text.length <= breadcrumbKeyCharactersMax && !/[\0-\x1f\x7f]/.test(text);
}

const targetCharactersMax = 4_096;
