import { tap, type TestEvent } from 'node:test/reporters';

/**
 * Node's TAP report, with the causes of an error in its message: TAP has no place for them. JavaScript
 * takes U+2028 and U+2029 for ends of a line, and so does tap's parser: a title would end there.
 */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const text of tap(withCauses(events))) {
    yield text.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
  }
}

async function* withCauses(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  for await (const event of events) {
    if (event.type === 'test:fail') addCauses(event.data.details.error.cause);
    yield event;
  }
}

function addCauses(error: unknown): void {
  if (!(error instanceof Error)) return;
  for (let { cause } = error; cause instanceof Error; { cause } = cause) {
    error.message += `\nCaused by: ${cause.message}`;
  }
}
