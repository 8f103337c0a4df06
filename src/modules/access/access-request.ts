import type {
  AccessClient,
  ContentRequest,
  Fields,
  RequestTarget,
} from '../../core/http/request.ts';
import type { Visitor } from '../../core/http/visitor.ts';

/** The parts of a request that decide whether its client may have the answer. */
export interface AccessRequest extends RequestTarget {
  readonly method: string;
  readonly fields: Fields;
  /** As in ContentRequest: Authorization, once a rule has taken it from the fields. */
  readonly password?: string;
  /** The client itself, never a described visitor. */
  readonly visitor: Visitor;
}

/** A request, or one that an operation describes for its client. */
export interface GuardedRequest extends AccessRequest {
  /** Whose access counts, in place of that of `visitor` with `fields`. */
  readonly client?: AccessClient | undefined;
  /** Collects the names of the rules that the answer depends on. */
  readonly accessRules?: Set<string>;
  readonly passedAccess?: ReadonlySet<string>;
  readonly inside?: ContentRequest['inside'];
}
