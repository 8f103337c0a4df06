const typeName = /^[a-z][a-z0-9_-]{0,63}(?:\.[a-z][a-z0-9_-]{0,63}){1,7}$/;

/**
 * Whether a text can be the name of an event type: dotted, in lower case
 * (docs/design/webhooks.md#events).
 */
export function isEventType(text: string): boolean {
  return typeName.test(text);
}
