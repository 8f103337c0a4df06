import type { RedirectConfig } from '../config/config.ts';
import { locationFor } from '../http/redirect-target.ts';
import { noBody } from '../http/reply.ts';
import type { CandidateExplanation } from '../model/explanation.ts';
import type { ContentSource, PageRequest } from '../rules/source.ts';

/**
 * The redirects of the ini file: the source before all others. The first one that applies answers,
 * whatever the method is. Generic pages that open a page inside are not redirected.
 */
export function redirectSource(redirects: readonly RedirectConfig[]): ContentSource {
  const find = (request: PageRequest, depth: number): RedirectConfig | undefined =>
    depth > 0 ? undefined : redirects.find((one) => locationFor(one, request) !== undefined);
  return {
    name: 'redirect',
    respond(request, depth) {
      const found = find(request, depth);
      if (found === undefined) return undefined;
      return {
        status: found.status,
        fields: ['Location', locationFor(found, request) ?? '/', 'Content-Length', '0'],
        body: noBody,
        source: `redirect:${found.name}`,
        isReusable: true,
      };
    },
    explain(request, depth) {
      const found = find(request, depth);
      const candidates = redirects
        .filter((one) => locationFor(one, request) !== undefined)
        .map(({ name, origin, path }): CandidateExplanation => {
          const place = { redirect: name, origin, path };
          if (name === found?.name) return place;
          const says = `The redirect ${found?.name ?? ''} comes first in the ini file.`;
          return { ...place, lost: { code: 'earlier_redirect', says } };
        });
      if (found === undefined) return { candidates: [], reply: undefined };
      const notes = [`It redirects to ${locationFor(found, request) ?? ''}.`];
      return { candidates, reply: { redirect: found.name, status: found.status, notes } };
    },
  };
}
