import type { ContentRequest, Fields } from '../../core/http/request.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import type { Pipeline } from '../../core/pipeline/pipeline.ts';
import type { PlaceAccess } from '../../core/pipeline/place-access.ts';
import type { ErrorPages, PageRequest } from '../../core/pipeline/source.ts';
import type { CanonicalPath } from '../../core/values/path.ts';
import type { BreadcrumbVisits } from '../breadcrumbs/key-visits.ts';
import type { Disk } from '../files/disk.ts';
import type { CandidateReads } from './matcher.ts';
import type { FoundRule } from './rule.ts';
import type { PastRules } from './log/reads.ts';

/** Reads the rows that templates show, with the access of a visitor. */
export interface RowReader {
  /** Whether signed-in users may get other rows of some tables. */
  variesByUser(tables: readonly string[]): boolean;
  /** A text that changes with each change of rows in some tables, or of the tables. */
  version(tables: readonly string[]): string;
  /** One row, or a list of rows: the answer of record.get to an input; rejects as that does. */
  get(input: JsonObject, request: ContentRequest): Promise<JsonObject>;
}

/** The site as operations read it: the steps that answer visitors, and what these answer from. */
export interface SiteAccess
  extends Pick<Pipeline, 'respond' | 'explain' | 'limited'>, ErrorPages, BreadcrumbVisits {
  readonly access: PlaceAccess;
  /** The rule that replies at an origin and path if no file does; undefined if there is none. */
  findRule(place: {
    readonly origin: string;
    readonly path: CanonicalPath;
    readonly fields: Fields;
  }): FoundRule | undefined;
  /** Whether a mount has a file or a folder there. */
  hasFile(request: PageRequest): boolean;
  /** The files and folders of the mounts directly below a path. */
  readonly namesBelow: Disk['namesBelow'];
  /** The origins of the mounts, `*` among them. */
  readonly mountOrigins: readonly string[];
  /**
   * The same site with the page rules of another moment that answer at a time (milliseconds since
   * 1970), and the rows that its pages show then; files and sources are those of now.
   */
  at(
    rules: CandidateReads & Pick<PastRules, 'rule' | 'rowByKey'>,
    rows: RowReader,
    timeMs: number,
  ): SiteAccess;
  /**
   * The same site whose pages show the rows of another reader; with the rules that answer at a time
   * in milliseconds since 1970, by default now.
   */
  withRows(rows: RowReader, timeMs?: number): SiteAccess;
}
