/** The most sources with a known health. */
export const sourcesKnownMax = 1_000;

/** Upper bounds of the durations of answers of a source, in seconds. */
export const sourceBoundsSeconds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];
