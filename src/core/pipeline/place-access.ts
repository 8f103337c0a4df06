import type { Reply } from '../http/reply.ts';
import type { AccessClient, ContentRequest } from '../http/request.ts';
import type { Visitor } from '../http/visitor.ts';
import type { AccessExplanation, Explanation } from './explanation.ts';

/** A place that an operation reads; the path is canonical, or the key of a breadcrumb. */
export interface AccessPlace {
  readonly origin: string;
  readonly path: string;
  readonly query?: string;
}

/**
 * Whether clients may have the content of a place. The step `access` asks it for each path; content
 * that names a section of its own, and operations, ask it themselves.
 */
export interface PlaceAccess {
  /** Whether the ini file has access rules. */
  readonly hasRules: boolean;
  /**
   * The reply of content that names an access section, to a request that the section admits, or the
   * reply that leads to signing in; `section` is undefined for content that names none. The request
   * has been admitted to its path before. Throws or rejects with `unauthenticated`, `forbidden`,
   * `rate_limited` or `unavailable`.
   */
  admitted<T>(
    section: string | undefined,
    request: ContentRequest,
    respond: (admitted: ContentRequest) => T | Promise<T>,
  ): T | Reply | Promise<T | Reply>;
  /**
   * Adds the access rules of a place, and those of its content, to an explanation; one that refuses
   * decides the status.
   */
  explainPlace(
    place: Omit<AccessPlace, 'query'> & { readonly visitor: Visitor },
    explanation: Explanation,
  ): Explanation;
  /** Whether the sections that content names let a described visitor in. */
  explainSections(
    sections: readonly (string | undefined)[],
    visitor: Visitor,
  ): readonly AccessExplanation[];
  /**
   * Requires that the access rules let a client of operations see a place. Throws or rejects as
   * `admitted`; undefined if nothing takes time. `accessRules` collects the rules of the place.
   */
  requirePlace(
    place: AccessPlace,
    client: AccessClient,
    accessRules?: Set<string>,
  ): Promise<void> | undefined;
  /** The same for the section that the content of the place names itself. */
  requireSection(
    section: string | undefined,
    place: AccessPlace,
    client: AccessClient,
    accessRules?: Set<string>,
  ): Promise<void> | undefined;
}

/** The name of a section that no ini file has: what names it is closed. */
export const unknownSection = '';
