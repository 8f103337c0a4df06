/** The failure of an operation; `code` is one of the codes in the reference. */
export class WaymarkError extends Error {
  readonly code: string;
  readonly field: string | undefined;
  readonly problems: readonly unknown[] | undefined;
  /** The id of the failure, which is also in the server's log. */
  readonly id: string | undefined;

  constructor(error: ErrorMember) {
    super(error.message);
    this.name = 'WaymarkError';
    this.code = error.code;
    this.field = error.field;
    this.problems = error.problems;
    this.id = error.id;
  }
}

interface ErrorMember {
  readonly code: string;
  readonly message: string;
  readonly field?: string;
  readonly problems?: readonly unknown[];
  readonly id?: string;
}

/** The envelope of an answer or a packet. */
export interface AnswerEnvelope {
  readonly r: string;
  readonly id?: number;
  readonly data?: unknown;
  readonly error?: ErrorMember;
  readonly vk?: string;
  readonly replayed?: boolean;
}
