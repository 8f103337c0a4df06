/** Bytes of a kibibyte. */
export const KIB = 1024;
/** Bytes of a mebibyte. */
export const MIB = 1024 * KIB;

const msPerUnit: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

const bytesPerUnit: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
};

/** Parses a time such as `500ms`, `3s`, `5m`, `2h` or `30d` to milliseconds; or undefined. */
export function durationMs(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,12})\s?(ms|s|m|h|d)$/.exec(text) ?? [];
  return digits === '' ? undefined : Number(digits) * (msPerUnit[unit] ?? NaN);
}

/**
 * Parses a size such as `64KiB`, `256MiB`, `10MB` or `4096` to bytes; undefined for other texts.
 */
export function sizeBytes(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,15})\s?([a-z]{1,3})?$/i.exec(text) ?? [];
  const scale = bytesPerUnit[unit === '' ? 'b' : unit.toLowerCase()];
  const bytes = digits === '' || scale === undefined ? NaN : Number(digits) * scale;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

const timeUnits = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 } as const;
const sizeUnits = { TiB: 2 ** 40, GiB: 2 ** 30, MiB: 2 ** 20, KiB: 2 ** 10 } as const;

/** Formats milliseconds for durationMs, in the largest unit that gives a whole number. */
export function durationText(ms: number): string {
  const unit = Object.entries(timeUnits).find(([, unitMs]) => ms % unitMs === 0 && ms > 0);
  return unit === undefined ? `${ms}ms` : `${ms / unit[1]}${unit[0]}`;
}

/** Formats bytes for sizeBytes, in the largest unit that gives a whole number. */
export function sizeText(bytes: number): string {
  const unit = Object.entries(sizeUnits).find(([, unitBytes]) => bytes % unitBytes === 0);
  return unit === undefined || bytes === 0 ? String(bytes) : `${bytes / unit[1]}${unit[0]}`;
}

/** Bytes for a person to read, in whole megabytes: `1 MB` at least. */
export function megabytes(bytes: number): string {
  return `${Math.max(1, Math.ceil(bytes / bytesPerMegabyte)).toLocaleString('en')} MB`;
}

const bytesPerMegabyte = 1e6;

/** A number and the noun of what it counts: `1 page`, `2 pages`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
