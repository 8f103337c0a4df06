import { respelledReply } from '../http/respelled.ts';
import { servicePath } from '../values/path.ts';
import type { Step } from './pipeline.ts';

/**
 * The steps of the core: a target that was not encoded leads to its encoded form (RFC 9112 §3.2),
 * `{base}/svc1…` belongs to the server itself, and all other paths are content of the site.
 */
export function ownSteps(base: string): readonly Step[] {
  return [
    {
      at: 'head',
      handle: (request, next) =>
        request.sent?.incoming.isUnencoded === true
          ? respelledReply(request, 'none')
          : next(request),
    },
    {
      at: 'service',
      handle(request, next) {
        const path = servicePath(request.path, base);
        if (path === undefined || request.sent === undefined) return next(request);
        return request.sent.answers.service(path, request);
      },
    },
    {
      at: 'content',
      handle: (request, next) => request.sent?.answers.content(request, next) ?? next(request),
    },
  ];
}
