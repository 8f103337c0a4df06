import packageJson from '../package.json' with { type: 'json' };

/** Waymark's version, as its package says it. */
export const { version } = packageJson;
