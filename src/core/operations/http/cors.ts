import type { FieldList } from '../../http/reply.ts';
import type { Fields } from '../../http/request.ts';
import type { Operation } from '../operation.ts';

/**
 * Returns the CORS fields of an answer (Fetch standard §3.2): pages of the allowed origins may call
 * the operations that running pages use, and no others. Preflights get the same fields.
 */
export function corsFields(
  operation: Operation | undefined,
  corsOrigins: readonly string[],
  fields: Fields,
): FieldList {
  if (operation?.scope !== 'render' && operation?.forPages !== true) return [];
  const origin = fields.origin ?? '';
  const any = corsOrigins.includes('*');
  // Requests without Origin get the field as well, so that caches store one answer for all.
  if (!any && !corsOrigins.includes(origin)) return ['Vary', 'Origin'];
  return [
    'Access-Control-Allow-Origin',
    any ? '*' : origin,
    ...(any ? [] : ['Vary', 'Origin']),
    'Access-Control-Expose-Headers',
    'ETag',
    ...(fields['access-control-request-method'] === undefined
      ? []
      : [
          'Access-Control-Allow-Methods',
          'GET, POST',
          'Access-Control-Allow-Headers',
          'apikey, authorization, content-type, if-none-match',
          'Access-Control-Max-Age',
          '86400',
        ]),
  ];
}
