/** What one attempt came to (docs/design/webhooks.md#deliveries, seed §6.4). */
export interface Verdict {
  /** `failed` is tried again as long as the schedule goes on. */
  readonly outcome: 'completed' | 'completed_404' | 'failed';
  /**
   * What it says of the receiver: `well`; `sick`, where it is overloaded, broken or not there;
   * `unwilling`, where it was quick to say no, to this message or to all.
   */
  readonly receiver: 'well' | 'unwilling' | 'sick';
  /** Whether it wants no more of this hook: the hook is paused. */
  readonly isGone: boolean;
  /** Whether it was sent too much at once: a batch is split. */
  readonly isTooLarge: boolean;
}

const completed: Verdict = {
  outcome: 'completed',
  receiver: 'well',
  isGone: false,
  isTooLarge: false,
};
const completed404: Verdict = { ...completed, outcome: 'completed_404' };
const gone: Verdict = { ...completed, isGone: true };
const refused: Verdict = { ...completed, outcome: 'failed', receiver: 'unwilling' };
const tooLarge: Verdict = { ...refused, isTooLarge: true };
const failed: Verdict = { ...completed, outcome: 'failed', receiver: 'sick' };

/**
 * Judges an attempt by the status of its answer, undefined where none came: the address was
 * refused, TLS failed, the connection broke, the time was over.
 */
export function verdictOn(status: number | undefined): Verdict {
  if (status === undefined || status < 200 || status > 499) return failed;
  if (status < 300) return completed;
  switch (status) {
    case 404:
      return completed404;
    case 408:
    case 425:
    case 429:
      return failed;
    case 410:
      return gone;
    case 413:
      return tooLarge;
    default:
      return refused;
  }
}
