/** Limits of the port and of the operations on it, each with its unit in its name. */

/** Values of the JSON of an operation, those in arrays and objects included. */
export const jsonValuesMax = 262_144;
/** The name of an operation, and the id, in a message of a websocket, as JSON. */
export const operationNameBytesMax = 256;
export const messageIdBytesMax = 4_096;
