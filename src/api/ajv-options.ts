import type { Options } from 'ajv';

/**
 * The options by which ajv compiles Waymark's own schemas: strictly, but without a check by the
 * meta-schema, which would take the first caller a fifth of a second. The tests do that check.
 */
export const ajvOptions: Options = { strict: true, meta: false, validateSchema: false };
