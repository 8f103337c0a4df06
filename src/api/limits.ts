/** Members of an enginedata that wait each for itself; of more, those that they are in wait. */
export const waitingMembersMax = 100;
/** Problems that the answer to a write names. */
export const problemsMax = 100;
