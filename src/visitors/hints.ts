import type { FieldList } from '../http/reply.ts';
import type { Fields } from '../http/request.ts';

const formFactors = 'Sec-CH-UA-Form-Factors';

/** A system for both, and the one that a tablet claims where it wants a page for desktops. */
const unclear: ReadonlySet<string> = new Set(['"linux"', '"chrome os"']);

/**
 * What is asked of a browser that speaks client hints and has not told a tablet from a desktop (RFC
 * 8942 §3.1): that it does. Critical-CH lets it ask again at once, for a breadcrumb is mostly
 * visited once; where the hints that come by themselves tell all, that would be a round trip for
 * nothing.
 */
export function hintFields(fields: Fields): FieldList {
  const platform = fields['sec-ch-ua-platform']?.toLowerCase() ?? '';
  if (fields['sec-ch-ua-mobile'] !== '?0' || !unclear.has(platform)) return [];
  const accept = ['Accept-CH', formFactors];
  return fields['sec-ch-ua-form-factors'] === undefined
    ? [...accept, 'Critical-CH', formFactors]
    : accept;
}
