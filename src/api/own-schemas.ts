import type { Options } from 'ajv';

/**
 * How schemas are compiled that are part of Waymark: strictly, but not held against their
 * meta-schema. The tests do that; compiling it would cost the first caller a fifth of a second.
 */
export const ownSchemas: Options = { strict: true, meta: false, validateSchema: false };
