/** What a request says in the fields that an answer varies by; of more, only a hash is stored. */
export const selectingCharactersMax = 512;
/** Members of a field whose order and spelling is made one for all clients; longer ones stay. */
export const canonicalMembersMax = 32;
/** Two readings of the clock may differ by so much where nobody has set it. */
export const clockJitterMs = 1_000;
/** How long a response waits until other workers see what it has changed in the cache. */
export const sharedAnswerMs = 100;
