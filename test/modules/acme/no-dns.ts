/** The settings of ACME without dns-01. */
export const noDns = {
  dnsHook: undefined,
  dnsServer: undefined,
  dnsKeyFile: undefined,
  dnsWaitMs: 0,
} as const;

/** The settings of ACME without certificates on demand. */
export const notOnDemand = {
  onDemandUrl: undefined,
  onDemandRate: 10,
  onDemandMax: 1_000,
  onDemandWaitMs: 8_000,
} as const;
