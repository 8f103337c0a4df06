import { Readable } from 'node:stream';
import { spec } from 'node:test/reporters';
import type { TestEvent } from 'node:test/reporters';

/**
 * Node's own report, closed by a line that a script can read: `N passed, N failed`, and how many
 * were skipped if any was.
 */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let [passed, failed, skipped] = [0, 0, 0];
  async function* counted() {
    for await (const event of events) {
      // The summary without a file is that of the whole run.
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
