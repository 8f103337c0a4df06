/** How long after the end of a worker a new one is started, at first and at most. */
export const workerRestartMs = 100;
export const workerRestartMsMax = 30_000;
/** A worker that ran for this long did not end because it could not start. */
export const workerSettledMs = 60_000;
/** How long a process waits for the metrics of the others that share its port. */
export const metricsWaitMs = 1_000;
/** Requests to other processes that wait for a reply at once, per process and purpose. */
export const pendingRepliesMax = 4_096;
/** How long running requests have to end when the server stops. */
export const stopGraceMs = 10_000;
/** How long a process that was replaced keeps its connections open. */
export const drainMsMax = 600_000;
/** How long a new process may take to serve before the old one gives it up. */
export const takeOverMsMax = 60_000;
/** How often `restart` looks for the outcome. */
export const restartPollMs = 50;
/** Differences between the data and its log that `check-data` lists. */
export const differencesKeptMax = 1_000;
/** How long a command waits for an answer of the API. */
export const apiTimeoutMs = 60_000;
/** How long `import` does; the server answers when all is written. `fetch` waits for 300 s. */
export const importTimeoutMs = 290_000;
/** How long `hook test` waits for the attempt at its message, and how often it polls. */
export const testWaitMs = 20_000;
export const testPollMs = 100;
/** The shortest and longest retention that `waymark cluster` sets: one hour to ten years. */
export const retentionMsMin = 3_600_000;
export const retentionMsMax = 3_650 * 86_400_000;
/** Names of assets without a file that `waymark cluster status` shows; it counts the others. */
export const missingFilesShownMax = 10;
/** URLs of a comparison that get pictures, and how long all of them may take. */
export const picturesMax = 200;
export const picturesMsMax = 20 * 60_000;
/** How long the preview link for the pictures works, if it cannot be revoked. */
export const previewSecondsOfPictures = 30 * 60;
/** How long a page may load, and an answer of the browser may take. */
export const pictureLoadMs = 10_000;
export const pictureCallMs = 30_000;
/** The width of a picture, and its most height, in CSS pixels. */
export const pictureWidth = 1_280;
export const pictureHeightMax = 6_000;
