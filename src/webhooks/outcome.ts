/** The meaning of the status of one attempt (docs/design/webhooks.md#deliveries). */
export interface Verdict {
  /** `failed` deliveries are retried until the schedule ends. */
  readonly outcome: 'completed' | 'completed_404' | 'failed';
  /**
   * The state of the receiver: `healthy`; `failing` if it is overloaded, broken or unreachable;
   * `refusing` if it refused this message with a 4xx status.
   */
  readonly receiver: 'healthy' | 'refusing' | 'failing';
  /** Whether the receiver answered 410 (Gone): the hook is paused. */
  readonly isGone: boolean;
  /** Whether the receiver answered 413 (Content Too Large): a batch is split. */
  readonly isTooLarge: boolean;
}

const completed: Verdict = {
  outcome: 'completed',
  receiver: 'healthy',
  isGone: false,
  isTooLarge: false,
};
const completed404: Verdict = { ...completed, outcome: 'completed_404' };
const gone: Verdict = { ...completed, isGone: true };
const refused: Verdict = { ...completed, outcome: 'failed', receiver: 'refusing' };
const tooLarge: Verdict = { ...refused, isTooLarge: true };
const failed: Verdict = { ...completed, outcome: 'failed', receiver: 'failing' };

/**
 * The verdict on an attempt by the status of its response. Undefined stands for no response: a
 * refused address, a TLS failure, a broken connection or a timeout.
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
