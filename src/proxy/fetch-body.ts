import { finished, Readable } from 'node:stream';
import { Failure } from '../model/failure.ts';
import { notePassedBytes } from '../outbound/passed-bytes.ts';

/**
 * The content of a request on its way to a source, at the source's speed. Fails with `too_large`
 * past `bytesMax`, or with what the content itself failed with. Destroying it leaves the request's
 * own stream paused and whole, since its connection still has to carry the answer.
 */
export function meteredBody(body: Readable, bytesMax: number): Readable {
  let bytes = 0;
  let isRead = false;
  const metered = new Readable({
    read() {
      // To listen is to read: what a source is never sent stays with the request.
      if (!isRead) body.on('data', take);
      isRead = true;
      body.resume();
    },
    destroy(error, done) {
      // What it has failed with may still have to be told: to nobody, it would end the process.
      if (body.destroyed) body.on('error', () => undefined);
      stopWatching();
      body.off('data', take).pause();
      done(error);
    },
  });
  const take = (chunk: Buffer): void => {
    bytes += chunk.length;
    notePassedBytes(chunk.length);
    if (bytes > bytesMax) metered.destroy(bodyTooLarge(bytesMax));
    else if (!metered.push(chunk)) body.pause();
  };
  const stopWatching = finished(body, { writable: false }, (error) => {
    if (error) metered.destroy(error);
    else metered.push(null);
  });
  // The sender stops listening when it has its answer.
  metered.on('error', () => undefined);
  return metered;
}

/** What a client is told whose request's content is more than a source is sent. */
export function bodyTooLarge(bytesMax: number): Failure {
  return new Failure('too_large', `At most ${bytesMax} bytes can be sent to this page.`, {
    limit: 'content_size',
  });
}
