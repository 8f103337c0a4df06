/** The connection of a request. */
export interface ConnectionInfo {
  /** Whether the connection was used before: it has carried a response, or was idle. */
  hasAnswered: boolean;
  /** Whether it ended incompletely, see connection-end.ts. */
  readonly hasBrokenOff: boolean;
}
