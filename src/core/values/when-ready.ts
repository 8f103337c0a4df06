/**
 * Calls a function with a value: at once, or when a promise has it. What is known at once stays
 * synchronous, so that its answer is made in the same turn of the event loop.
 */
export function whenReady<T, U>(
  value: T | Promise<T>,
  next: (value: T) => U | Promise<U>,
): U | Promise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}
