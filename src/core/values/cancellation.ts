/**
 * Reports that a client no longer waits for its answer. It is the part of AbortSignal that the code
 * uses: creating an AbortSignal takes longer than answering with a small page.
 */
export interface Cancellation {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once: true }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}
