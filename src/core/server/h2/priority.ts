import { splitList } from '../../http/syntax.ts';

/** When an answer is sent, beside others of its connection (RFC 9218 §4). */
export interface Priority {
  /** 0 comes first, 7 last. */
  readonly urgency: number;
  /** Whether the client uses parts of the answer: it then shares the connection with others. */
  readonly isIncremental: boolean;
}

/** The priority of an answer that the client says nothing about (§4.1, §4.2). */
export const defaultPriority: Priority = { urgency: 3, isIncremental: false };

/** Longer values say nothing that matters here. */
const valueCharactersMax = 256;

/** Reads the value of Priority; unknown and malformed parameters have no effect (§4). */
export function parsePriority(value: string | undefined): Priority {
  if (value === undefined || value.length > valueCharactersMax) return defaultPriority;
  const known = priorities.get(value);
  if (known !== undefined) return known;
  let { urgency, isIncremental } = defaultPriority;
  for (const member of splitList(value, ',') ?? []) {
    const [, digit] = /^u=([0-7])(?:;|$)/.exec(member) ?? [];
    if (digit !== undefined) urgency = Number(digit);
    const [, said] = /^i(?:=\?([01]))?(?:;|$)/.exec(member) ?? [];
    if (/^i(?:;|$)/.test(member) || said !== undefined) isIncremental = said !== '0';
  }
  const parsed = { urgency, isIncremental };
  if (priorities.size < prioritiesMax) priorities.set(value, parsed);
  return parsed;
}

/** Values that were read before: browsers send few different ones. */
const priorities = new Map<string, Priority>();
const prioritiesMax = 100;
