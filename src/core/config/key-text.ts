/** What the reference says about a key of the ini file besides its parser and default. */
export interface KeyText {
  /** One or two sentences. */
  readonly about: string;
  readonly example: string;
  /** Whether a change needs a restart; otherwise a reload applies it. */
  readonly restart?: true;
}
