import type { Directive } from '../directive.ts';
import type { SitePlace } from '../sections.ts';
import { nearest, unneeded } from './words.ts';

/** A virtual host, or the folder of an `.htaccess`, on its way to sections of Waymark. */
export interface ApacheSite extends SitePlace {
  /** Its names, of which the first one is `ServerName`. */
  readonly hosts: readonly string[];
  readonly scheme: 'http' | 'https' | undefined;
  /** Whether paths of `RewriteRule` begin without a slash, as in `.htaccess`. */
  readonly isFolder: boolean;
  readonly hasFiles: boolean;
}

/** Leaves a directive with what comes nearest, unless it needs no counterpart. */
export function leaveUnknown(
  { conversion }: Pick<ApacheSite, 'conversion'>,
  directive: Directive,
): void {
  const { name, words } = directive;
  if (unneeded.has(name)) return;
  const all = words.join(' ').toLowerCase();
  if (name === 'require' && all === 'all granted') return;
  if (name === 'allow' && all === 'from all') return;
  if (
    name === 'options' &&
    words.every((word) =>
      /^[+-]?(?:indexes|followsymlinks|symlinksifownermatch|multiviews|none)$/i.test(word),
    )
  )
    return;
  const known = Object.hasOwn(nearest, name) ? nearest[name] : undefined;
  conversion.leave(directive, known ?? 'nothing that this command knows');
}
