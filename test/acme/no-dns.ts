/** The settings of ACME without dns-01. */
export const noDns = {
  dnsHook: undefined,
  dnsServer: undefined,
  dnsKeyFile: undefined,
  dnsWaitMs: 0,
} as const;
