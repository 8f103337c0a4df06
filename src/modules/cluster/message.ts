import type { Msg } from '@nats-io/transport-node';

/** Which part of which entry a message of the stream is. */
interface Part {
  /** The id of the append that has stored it. */
  readonly id: string;
  /** The position of the entry before this one. */
  readonly after: number;
  /** From 0. */
  readonly at: number;
  /** The number of messages of the entry. */
  readonly count: number;
}

/** The header fields of a message for a part of an entry. */
export function entryHeaders({
  id,
  after,
  at,
  count,
}: Part): readonly (readonly [string, string])[] {
  return [
    ['Waymark-Append', id],
    ['Waymark-After', String(after)],
    ['Waymark-Part', `${at + 1}/${count}`],
  ];
}

/** The id of the append in the text of header fields (RFC 9112 §5); undefined if it has none. */
export function appendIdOf(fields: string): string | undefined {
  const name = 'Waymark-Append:';
  const line = fields.split('\r\n').find((one) => one.startsWith(name));
  return line?.slice(name.length).trim();
}

/** Reads those fields; undefined for a message that Waymark has not written. */
export function partOf({ headers }: Pick<Msg, 'headers'>): Part | undefined {
  const id = headers?.get('Waymark-Append') ?? '';
  const after = headers?.get('Waymark-After') ?? '';
  const [at = '', count = ''] = (headers?.get('Waymark-Part') ?? '').split('/');
  const isWhole = [after, at, count].every((number) => /^\d{1,15}$/.test(number));
  if (id === '' || !isWhole) return undefined;
  return { id, after: Number(after), at: Number(at) - 1, count: Number(count) };
}

/** The sequence of a message in the stream, from its metadata. */
export function sequenceOf({ headers }: Pick<Msg, 'headers'>): number {
  return Number(headers?.get('Nats-Sequence'));
}
