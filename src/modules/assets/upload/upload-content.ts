import { createHash } from 'node:crypto';
import { SharedLimit } from '../../../core/fair/shared-limit.ts';
import { requireIntactBody } from '../../../core/http/content/broken-content.ts';
import { passContentOn } from '../../../core/pipeline/body.ts';
import type { RequestBody } from '../../../core/pipeline/exchange.ts';
import { Failure, failureFrom } from '../../../core/values/failure.ts';
import type { AssetWriter } from '../asset-files.ts';
import { invalidRange } from './upload-fields.ts';

/** Uploads that a process receives at the same time. */
export const uploadsAtOnceMax = 32;

/** Further uploads that wait for a place, and how long. */
export const uploadsWaitingMax = 64;
export const uploadWaitMs = 10_000;

/** The uploads that this process receives: their clients decide how long they take. */
export const uploads = new SharedLimit({
  what: 'uploads',
  limit: 'uploads',
  held: 'long',
  max: uploadsAtOnceMax,
  waiting: { max: uploadsWaitingMax, ms: uploadWaitMs },
  retryAfterSeconds: 2,
});

/**
 * Writes the content of a request, at the pace of the disk. Rejects with the failure of the writer,
 * with `too_large`, with `unprocessable` for content of another digest, which is taken back, and
 * with `invalid` if the client closes the connection before the end: what has
 * arrived is kept then, if the upload can be continued.
 */
export async function receiveContent(
  body: RequestBody | undefined,
  writer: AssetWriter,
  {
    bytesMax,
    end,
    digest,
  }: {
    readonly bytesMax: number;
    readonly end: number | undefined;
    /** The SHA-256 that the content has to have, in lower-case hex. */
    readonly digest: string | undefined;
  },
): Promise<void> {
  if (body === undefined) return;
  const first = writer.bytes;
  const hash = digest === undefined ? undefined : createHash('sha256');
  passContentOn(body);
  try {
    await readTo(body, async (chunk) => {
      if (writer.bytes + chunk.length > (end ?? Infinity)) throw invalidRange();
      if (writer.bytes + chunk.length > bytesMax) throw tooLarge(bytesMax);
      hash?.update(chunk);
      await writer.write(chunk);
    });
    const received = hash?.digest('hex');
    if (received !== digest) {
      await writer.takeBack(first);
      throw otherContent(received, digest);
    }
  } catch (thrown) {
    // The parts before this one are right.
    const isCut =
      !(thrown instanceof Failure) || ['invalid', 'unprocessable'].includes(thrown.code);
    await (isCut ? writer.interrupt() : writer.discard());
    throw failureFrom(thrown);
  }
}

function otherContent(received = '', expected = ''): Failure {
  const message = `The content has the SHA-256 ${received} instead of ${expected}: send it again.`;
  return new Failure('unprocessable', message, { field: 'content-digest' });
}

/** Reads the content piece by piece; the connection stays open for the answer. */
function readTo(body: RequestBody, write: (chunk: Buffer) => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    let writing: Promise<void> = Promise.resolve();
    const stop = (thrown: unknown): void => {
      body.off('data', take).off('end', finish).off('close', cut).off('error', fail);
      // A later error has no other listener.
      body.on('error', () => undefined).pause();
      const rejectWith = (): void => {
        reject(thrown instanceof Error ? thrown : failureFrom(thrown));
      };
      writing.then(rejectWith, rejectWith);
    };
    const take = (chunk: Buffer): void => {
      body.pause();
      writing = write(chunk).then(() => {
        body.resume();
      });
      writing.catch(stop);
    };
    const finish = (): void => {
      body.off('close', cut).off('error', fail);
      writing.then(resolve, reject);
    };
    const fail = (error?: Error): void => {
      const text = 'The upload ended before its content was complete. Continue it, or repeat it.';
      stop(error instanceof Failure ? error : new Failure('invalid', text, { cause: error }));
    };
    const cut = (): void => {
      fail();
    };
    try {
      requireIntactBody(body);
    } catch (failure) {
      reject(failureFrom(failure));
      return;
    }
    if (body.destroyed) {
      fail();
      return;
    }
    body.on('error', fail).once('close', cut).once('end', finish).on('data', take);
    body.resume();
  });
}

/** The failure of a file with more bytes than `[asset] max`. */
export function tooLarge(bytesMax: number): Failure {
  return new Failure('too_large', `An asset may have ${bytesMax} bytes: see [asset] max.`, {
    limit: 'content_size',
  });
}
