/** Answers in the time between two writes of which a process counts each page … */
export const pagesCountedExactly = 1_000;
/** … and, above that, how many answers one counted page stands for. */
export const pagesCountedEach = 16;
