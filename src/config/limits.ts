/** How long the ini file must be unchanged before the server reads it. */
export const configSettleMs = 100;
/** How often the server looks whether the ini file is still being written, 10 s in all. */
export const configSettleRoundsMax = 100;
