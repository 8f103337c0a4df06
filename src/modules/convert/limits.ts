/** A configuration that is converted. */
export const convertedBytesMax = 1_048_576;
/** How deep blocks may nest in it. */
export const blockDepthMax = 32;

export const includeDepthMax = 8;
