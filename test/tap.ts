import { tap, type TestEvent } from 'node:test/reporters';

/** Node's TAP report, with the causes of an error in its message: TAP has no place for them. */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  yield* tap(withCauses(events));
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
