import { MIB } from '../values/units.ts';

/** How long the ini file must be unchanged before the server reads it. */
export const configSettleMs = 100;

/** Connections of a process; also the highest value of `connections_per_address`. */
export const connectionsMax = 10_000;

/** The highest rate of a key, in operations a second. */
export const keyRateMax = 1_000_000;
export const configFileBytesMax = MIB;

/** A set of keys (RFC 7517 §5). */
export const jwksBytesMax = MIB;
/** Header fields that a mount, a rule or a hook may add. */
export const customHeadersMax = 32;
/** A PEM file: a certificate with its chain, or a key. */
export const certificateBytesMax = MIB;

/** The name of a node. */
export const nodeNameCharactersMax = 253;
