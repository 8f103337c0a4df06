import { service, type JsonObject } from '../api/api.ts';
import { siteOf } from '../pages/address.ts';

/** A page rule of the kind `resolve`. */
export interface BreadcrumbRule extends JsonObject {
  readonly id: string;
  readonly seq: number;
  readonly path: string;
  readonly origin: string;
}

/** The address of a breadcrumb: that of its own path, or of link.htm with its key. */
export function linkOf({
  path,
  origin,
}: {
  readonly path: string;
  readonly origin: string;
}): string {
  const start = siteOf(origin);
  if (path.startsWith('/')) {
    const own = encodeURI(path.replace(/\*$/, '')).replaceAll('?', '%3F').replaceAll('#', '%23');
    return start + own;
  }
  return `${start}${service.pathname}userinterface.link.htm?k=${encodeURIComponent(path)}`;
}
