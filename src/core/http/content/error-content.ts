import { withoutFields, type Reply } from '../reply.ts';
import type { Fields } from '../request.ts';

/**
 * The fields of a request for the page of an error: without preconditions and ranges, which apply
 * to another page.
 */
export function plainGetFields(fields: Fields): Fields {
  const kept = Object.create(null) as Fields & Record<string, string>;
  for (const name of ['accept-encoding', 'accept-language']) {
    const value = fields[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}

/**
 * A page that is sent with the status of an error: without validators and Cache-Control, since no
 * cache may store it as the content of the URL.
 */
export function withoutCaching({ status, fields, body, source }: Reply): Reply {
  const names = ['etag', 'last-modified', 'accept-ranges', 'cache-control'];
  return { status, fields: withoutFields(fields, ...names), body, source };
}
