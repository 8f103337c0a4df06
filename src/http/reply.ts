import type { Readable } from 'node:stream';
import type { Cancellation } from '../model/cancellation.ts';

/** Header fields of an answer as a flat list: name, value, name, value. */
export type FieldList = readonly string[];

/** A piece of a file, first byte and last byte included (RFC 9110 §14.1.2). */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/**
 * What is sent of a representation, in order: literal bytes (multipart framing) or a range of its
 * content.
 */
export type Part = Buffer | ByteRange;

/** An open file that an answer is read from; whoever sends the answer closes it. */
export interface FileSource {
  /**
   * Reads into the buffer from a position of the file; resolves to the bytes read, 0 at its end.
   */
  read(buffer: Buffer, position: number): Promise<number>;
  close(): Promise<void>;
}

/**
 * The content of an answer. A `stream` is destroyed by whoever sends the answer when the client
 * goes away.
 */
export type Body =
  | { readonly kind: 'none' }
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | {
      readonly kind: 'file';
      readonly file: FileSource;
      readonly parts: readonly Part[];
      readonly bytesLength: number;
    }
  | {
      readonly kind: 'stream';
      readonly stream: Readable;
      readonly bytesLength: number | undefined;
      /** Fields that go out behind the content (RFC 9110 §6.5), once it has ended. */
      readonly trailers?: () => FieldList;
    };

/**
 * What the cache did for an answer: it had it (`hit`), had one that was stale, had one that the
 * source confirmed, had none (`miss`), or was left out of it (`pass`).
 */
export type CacheOutcome = 'hit' | 'stale' | 'revalidated' | 'miss' | 'pass';

/** Who waits for an answer: somebody else each time that the same is asked. */
export interface Asking {
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: Cancellation;
  /**
   * Sends an answer ahead of the one that counts (RFC 9110 §15.2), by its status and fields: not
   * 100, nor 101.
   */
  readonly interim?: ((status: number, fields: FieldList) => void) | undefined;
}

/** An answer before it has met a socket. */
export interface Reply {
  readonly status: number;
  /**
   * All fields but Connection, Server-Timing and framing; Content-Length where it is known, Date
   * where it is not that of this moment.
   */
  readonly fields: FieldList;
  readonly body: Body;
  /**
   * Who answered, for Server-Timing and the access log: `disk:<name>`, `rule:<id>` or `none`
   * (docs/design/requests.md#precedence).
   */
  readonly source: string;
  /** The id of the failure that it tells of, under which the log knows it too. */
  readonly failureId?: string;
  /** Undefined where no cache was in its way. */
  readonly cache?: CacheOutcome;
  /**
   * True where whoever asks for the same target, with the same values of the fields that Vary
   * names, would have the same answer: until the log or the configuration changes, and for as long
   * as a look at the disk is believed.
   */
  readonly isReusable?: true;
  /**
   * Of one that is reusable, asked each time before it is used again, with the milliseconds since
   * 1970: whether it still holds. Who says something of caches (Cache-Control) has it found out.
   */
  readonly holds?: ((nowMs: number) => boolean) | undefined;
}

/** An answer without content. */
export const noBody: Body = { kind: 'none' };

/** Frees what an answer holds when it is not going to be sent. */
export async function discard({ body }: Pick<Reply, 'body'>): Promise<void> {
  if (body.kind === 'stream') body.stream.destroy();
  if (body.kind === 'file') await body.file.close();
}

/** The value of a field of a reply, by lower-case name; undefined where it is absent. */
export function replyField({ fields }: Pick<Reply, 'fields'>, name: string): string | undefined {
  for (let at = 0; at < fields.length; at += 2) {
    if (isNamed(fields[at], name)) return fields[at + 1];
  }
  return undefined;
}

/** The values of a field by lower-case name, one for each line that it comes in. */
export function fieldLines(fields: FieldList, name: string): readonly string[] {
  let lines: string[] | undefined;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    if (isNamed(fields[at], name)) (lines ??= []).push(fields[at + 1] ?? '');
  }
  return lines ?? noLines;
}

const noLines: readonly string[] = [];

/** Whether a field has a name, in whatever case. */
function isNamed(field: string | undefined, name: string): boolean {
  return field?.length === name.length && field.toLowerCase() === name;
}

/** Whether answers of a status have no content (RFC 9110 §15.3.5, §15.3.6, §15.4.5). */
export function isEmptyStatus(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

/** Fields without those of some lower-case names. */
export function withoutFields(fields: FieldList, ...names: readonly string[]): FieldList {
  const isLeftOut = (field: string | undefined): boolean =>
    names.some((name) => isNamed(field, name));
  return fields.filter((_, at) => !isLeftOut(fields[at - (at % 2)]));
}
