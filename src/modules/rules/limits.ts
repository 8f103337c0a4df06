/** Candidates of one source that explain names, including the one that answers. */
export const explainCandidatesMax = 100;
