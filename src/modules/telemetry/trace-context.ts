/** Characters of a `tracestate` that is passed on (W3C Trace Context §3.3.1.5). */
const traceStateCharactersMax = 512;

/** Its most list-members (W3C Trace Context §3.3.1.1). */
const traceStateMembersMax = 32;

/** The trace that the sender of a request belongs to. */
export interface SentTrace {
  readonly traceId: string;
  /** The id of the sender's span. */
  readonly spanId: string;
  readonly isSampled: boolean;
  /** The value of `tracestate`; undefined without a valid one. */
  readonly state: string | undefined;
}

/** Version, trace-id, parent-id and trace-flags (W3C Trace Context §3.2.2). */
const parentForm = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/**
 * Reads the trace context of a request's fields: name, value, name, value. Undefined without a
 * single valid `traceparent` (W3C Trace Context §3.2): the trace then begins here. An invalid
 * `tracestate` is left out (§3.3).
 */
export function readTraceContext(fields: readonly string[]): SentTrace | undefined {
  let parent: string | undefined;
  let state: string | undefined;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? '';
    if (name.length !== 11 && name.length !== 10) continue;
    const lower = name.toLowerCase();
    const value = fields[at + 1] ?? '';
    if (lower === 'traceparent') {
      if (parent !== undefined) return undefined;
      parent = value;
    } else if (lower === 'tracestate') {
      state = state === undefined ? value : `${state},${value}`;
    }
  }
  if (parent === undefined || parent.length > traceStateCharactersMax) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', rest] = parentForm.exec(parent) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) {
    return undefined;
  }
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1;
  return { traceId, spanId, isSampled, state: validState(state) };
}

const key = '(?:[a-z][a-z\\d_*/-]{0,255}|[a-z\\d][a-z\\d_*/-]{0,240}@[a-z][a-z\\d_*/-]{0,13})';
/** A list-member: a key, with or without a tenant, and a value (W3C Trace Context §3.3.1). */
const memberForm = new RegExp(`^${key}=[\\x20-\\x2b\\x2d-\\x3c\\x3e-\\x7e]{1,256}$`);

/** The members of a `tracestate`; undefined if one is invalid, or if they are too many. */
function validState(text: string | undefined): string | undefined {
  if (text === undefined || text.length > traceStateCharactersMax) return undefined;
  if (!/^[\t\x20-\x7e]*$/.test(text)) return undefined;
  const members = text.split(',').map((member) => member.trim());
  const named = members.filter((member) => member !== '');
  const keys = new Set(named.map((member) => member.split('=', 1)[0]));
  const isValid = named.every((member) => memberForm.test(member));
  const areFew = named.length > 0 && named.length <= traceStateMembersMax;
  return isValid && areFew && keys.size === named.length ? named.join(',') : undefined;
}

/** The fields of a span for the servers that it calls. */
export function traceFields(
  traceId: string,
  spanId: string,
  { isSampled, state }: { readonly isSampled: boolean; readonly state: string | undefined },
): readonly string[] {
  const parent = ['traceparent', `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`];
  return state === undefined ? parent : [...parent, 'tracestate', state];
}
