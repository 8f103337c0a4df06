const KIB = 1024;

/** Characters of the JSON text of a table's schema. */
export const schemaCharactersMax = 1024 * KIB;
/** Objects and lists in a schema; compiling takes time in proportion. */
export const schemaNodesMax = 5_000;
/** Parts of a schema that check one row, each as often as a `$ref` leads to it. */
export const schemaChecksMax = 20_000;
/** Names that compiled code compares with each other: the sum of the squares of their numbers. */
export const schemaPairsMax = 500_000;
/** Schemas that a `$ref` leads through one after another. */
export const schemaDepthMax = 256;
/** Schemas that ajv compiles to one function, in a time that grows with their square. */
export const documentNodesMax = 40;
/** Compiled schemas that the process has ready besides those of its tables. */
export const compiledSchemasMax = 8;
export const tableFieldsMax = 500;
export const fieldNameCharactersMax = 128;
/** Fields that `index` may name; each costs an entry for each row. */
export const indexFieldsMax = 32;
export const searchFieldsMax = 16;
/** Conditions of `events`. */
export const eventConditionsMax = 64;
/** Entries of `read`, `insert` or `edit`. */
export const accessEntriesMax = 32;
export const patternCharactersMax = 1_000;
/** Characters of a text that a `format` is checked in; a longer one is not valid. */
export const formatCharactersMax = 8 * KIB;
