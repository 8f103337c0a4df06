import { Readable } from 'node:stream';
import { spec } from 'node:test/reporters';
import type { TestEvent } from 'node:test/reporters';

/** Node's own report, closed by a line that a script can read: `N passed, N failed`. */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let [passed, failed] = [0, 0];
  async function* counted() {
    for await (const event of events) {
      // The summary without a file is that of the whole run.
      if (event.type === 'test:summary' && event.data.file === undefined) {
        passed = event.data.counts.passed;
        failed = event.data.counts.tests - event.data.counts.passed;
      }
      yield event;
    }
  }
  const lines = Readable.from(counted()).pipe(new spec()) as AsyncIterable<Buffer>;
  for await (const line of lines) yield line.toString();
  yield `${passed} passed, ${failed} failed\n`;
}
