const KIB = 1024;
const MIB = 1024 * KIB;

/** The largest password file. */
export const passwordFileBytesMax = 4 * MIB;
/** The largest file of keys that sign links. */
export const linkKeysBytesMax = 64 * KIB;
/** Characters of a name, and bytes of a password, that a request may send. */
export const loginNameCharactersMax = 256;
export const passwordBytesMax = 1_024;
/** bcrypt ignores what comes after these bytes, so a longer password is none. */
export const bcryptBytesMax = 72;
/** The highest costs of a hash in a password file: scrypt's memory and rounds, bcrypt's cost. */
export const scryptBytesMax = 128 * MIB;
export const scryptParallelMax = 16;
export const bcryptCostMax = 15;
/** Slow checks at the same time, and those that wait for them, and how long. */
export const checksRunningMax = 2;
export const checksWaitingMax = 64;
export const checkWaitMs = 10_000;
/** How long a right password is right without a slow check, and how many are in memory. */
export const rememberedMs = 60_000;
export const rememberedMax = 16_384;
/** Wrong passwords a minute from one address, or IPv6 network of 64 bits … */
export const wrongPerAddressMax = 10;
/** … and for one name, from addresses that it has never come from. */
export const wrongPerNameMax = 50;
/** Addresses and names whose tries are counted, and names with their known addresses. */
export const triesCountedMax = 16_384;
/** How long a thread for bcrypt waits for more. */
export const threadIdleMs = 30_000;
/** Paths whose rules are in memory. */
export const pathsRememberedMax = 4_096;
/** How long another server may take for a decision, and the content of its refusal. */
export const forwardTimeoutMs = 5_000;
export const forwardContentBytesMax = 64 * KIB;
/** Token buckets of rates in memory, and how often full ones make room: in a few milliseconds. */
export const bucketsMax = 200_000;
export const bucketsSweepMs = 1_000;
/** Characters of a user, key or field in memory; of a longer one, its hash counts. */
export const ownerCharactersMax = 64;
/** How long a worker waits for the process that has the buckets of all workers. */
export const tokenWaitMs = 2_000;
/** The largest file of networks, and the broken lines of it that the log names. */
export const networkFileBytesMax = 16 * MIB;
export const networkLinesNamedMax = 5;
