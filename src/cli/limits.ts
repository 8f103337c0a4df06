/** How long running requests have to end when the server stops. */
export const stopGraceMs = 10_000;

/** How long a new process may take to serve before the old one gives it up. */
export const takeOverMsMax = 60_000;

/** URLs of a comparison that get pictures, and how long all of them may take. */
export const picturesMax = 200;
