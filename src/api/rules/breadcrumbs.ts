import type { JSONSchemaType } from 'ajv';
import { siteThen, type Crumb, type GetOperations, type SiteAccess } from './gets.ts';
import { getResolveDescription, linkDescription } from './gets-description.ts';
import { asOfProperty, timeThen } from '../records/moment.ts';
import type { Call, Handler, OperationResult } from '../operation.ts';
import { parseOrigin, parseQueryText, requireBreadcrumbKey } from './place.ts';
import { previewFor, previewProperties } from './preview.ts';

interface BreadcrumbThen extends Breadcrumb {
  as_of?: string;
}

interface Breadcrumb {
  k: string;
  origin?: string;
  query?: string;
}

const breadcrumb = {
  k: { type: 'string', description: 'The key of the breadcrumb.' },
  origin: { type: 'string', nullable: true, description: 'That of the request by default.' },
  query: { type: 'string', nullable: true },
} as const;

/**
 * userinterface.get_resolve: what a breadcrumb comes to, as data; for the caller, or for a visitor
 * as the caller describes one.
 */
export function getResolve(parts: GetOperations): Handler<BreadcrumbThen> {
  return {
    ...getResolveDescription,
    input: {
      type: 'object',
      required: ['k'],
      properties: { ...breadcrumb, ...previewProperties, as_of: asOfProperty },
    } as unknown as JSONSchemaType<BreadcrumbThen>,
    run: async (v, call) => {
      const site = siteThen(parts, v, call);
      const nowMs = timeThen(parts.store, v.as_of);
      const described = await previewFor(v, call, { nowMs, locationOf: parts.locationOf });
      const crumb = crumbOf(v, call);
      const visitor = nowMs === undefined ? crumb.visitor : crumb.visitor.with({ nowMs });
      return answerData(site, { ...crumb, visitor, ...described });
    },
  };
}

/**
 * userinterface.link.htm: the breadcrumb itself (docs/design/rendering.md#breadcrumbs): over HTTP a
 * redirect or a page, over a websocket what get_resolve answers.
 */
export function linkHtm({ site }: GetOperations): Handler<Breadcrumb> {
  return {
    ...linkDescription,
    input: { type: 'object', required: ['k'], properties: breadcrumb },
    run: (v, call) => {
      const crumb = crumbOf(v, call);
      if (call.transport === 'websocket') return answerData(site, crumb);
      const resolved = site.resolve(crumb);
      if (!(resolved instanceof Promise)) {
        return { kind: 'reply', reply: site.breadcrumb(resolved, crumb) };
      }
      return resolved.then((come) => ({ kind: 'reply', reply: site.breadcrumb(come, crumb) }));
    },
  };
}

async function answerData(site: SiteAccess, crumb: Crumb): Promise<OperationResult> {
  const resolved = await site.resolve(crumb);
  const { data, caching } = site.breadcrumbData(resolved);
  return { kind: 'data', data, caching };
}

function crumbOf({ k, origin, query }: Breadcrumb, call: Call): Crumb {
  requireBreadcrumbKey(k);
  return {
    key: k,
    origin: origin === undefined ? call.origin : parseOrigin(origin),
    query: parseQueryText(query ?? ''),
    fields: call.fields,
    visitor: call.visitor,
  };
}
