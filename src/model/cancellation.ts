/**
 * Says when nobody waits for an answer any more: what is used of an AbortSignal for that, since one
 * of those costs more to make than a small page to answer.
 */
export interface Cancellation {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once: true }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}
