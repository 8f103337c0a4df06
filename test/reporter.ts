import { Readable } from 'node:stream';
import { spec } from 'node:test/reporters';
import type { TestEvent } from 'node:test/reporters';

/**
 * Node's `spec` report, with a last line for scripts: `N passed, N failed`, and the number of
 * skipped tests if any was skipped.
 */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let [passed, failed, skipped] = [0, 0, 0];
  async function* counted() {
    for await (const event of events) {
      // The summary of the whole run has no file.
      if (event.type === 'test:summary' && event.data.file === undefined) {
        ({ passed, skipped } = event.data.counts);
        failed = event.data.counts.tests - passed - skipped;
      }
      yield event;
    }
  }
  const lines = Readable.from(counted()).pipe(new spec()) as AsyncIterable<Buffer>;
  for await (const line of lines) yield line.toString();
  yield `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`;
}
