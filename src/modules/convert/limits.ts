/** A configuration that is converted. */
export const convertedBytesMax = 1_048_576;
/** How deep blocks may nest in it. */
export const blockDepthMax = 32;
/** How many lines the snippets of a Caddyfile may expand to. */
export const expandedDirectivesMax = 100_000;
/** How much of a line a remark repeats. */
export const remarkCharactersMax = 100;
/** How often lines that `check` refuses are taken out of a converted file. */
export const refusalRoundsMax = 20;
/** How many files a configuration may include, and how deep they include each other. */
export const includedFilesMax = 1_000;
export const includeDepthMax = 8;
