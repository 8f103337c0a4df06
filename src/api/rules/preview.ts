import { preferredLanguage } from '../../http/negotiation.ts';
import { parseAddress } from '../../model/cidr.ts';
import { countryCode, millionths, parseMomentText } from '../../model/condition.ts';
import { Failure } from '../../model/failure.ts';
import { headerBlockBytesMax, userNameCharactersMax, userRolesMax } from '../../model/limits.ts';
import { drawOf, lotOf } from '../../visitors/lot.ts';
import {
  isDeviceClass,
  type DeviceClass,
  deviceClasses,
  type Visitor,
} from '../../model/visitor.ts';

/** A visitor as somebody describes one: what is left out is not known of it. */
export interface Preview {
  user?: string;
  role?: string;
  country?: string;
  lang?: string;
  device?: string;
  ip?: string;
  at?: string;
  draw?: number;
}

const text = { type: 'string', nullable: true } as const;

/** The part of an input schema that describes a visitor (contract §5, explain). */
export const previewProperties = {
  user: { ...text, maxLength: userNameCharactersMax, description: 'Name of the signed-in user.' },
  role: { ...text, description: 'Its roles, separated by commas.' },
  country: { ...text, description: 'Where the visitor is, as an ISO 3166-1 code such as CH.' },
  lang: {
    ...text,
    pattern: '^[\\t\\x20-\\x7e]*$',
    maxLength: headerBlockBytesMax,
    description: 'The Accept-Language of the request.',
  },
  device: { ...text, description: `What the device is, out of ${deviceClasses.join(', ')}.` },
  ip: { ...text, description: 'Address of the visitor.' },
  at: { ...text, description: 'When the visitor comes, as a date-time; now by default.' },
  draw: {
    type: 'number',
    nullable: true,
    minimum: 0,
    exclusiveMaximum: 100,
    description: 'What the visitor drew where shares of all are asked for (percent).',
  },
} as const;

const previewNames = Object.keys(previewProperties) as readonly (keyof Preview)[];

/** The members of some input that describe a visitor. */
export function previewOf(v: Preview): Preview {
  const given = previewNames.filter((name) => ((v[name] as unknown) ?? null) !== null);
  return Object.fromEntries(given.map((name) => [name, v[name]]));
}

/** Whether an input describes a visitor at all. */
export function isPreview(preview: Preview): boolean {
  return Object.keys(preview).length > 0;
}

/** What a preview needs to know besides. */
export interface PreviewSurroundings {
  readonly nowMs: number;
  /** Where an address is; undefined where nobody knows. */
  readonly countryOf: (address: string) => Promise<string | undefined>;
}

/**
 * The visitor of a description. Rejects with `invalid`, naming the field, for what cannot be.
 */
export async function previewVisitor(
  preview: Preview,
  { nowMs, countryOf }: PreviewSurroundings,
): Promise<Visitor> {
  const { user, lang, ip, draw } = preview;
  const roles = listOf(preview.role);
  if (roles.length > 0 && user === undefined) {
    throw new Failure('invalid', 'A role is that of a user: say which.', { field: 'role' });
  }
  const said = parsed('country', preview.country, countryCode, 'two letters such as CH');
  const at = parsed('at', preview.at, parseMomentText, 'a date-time such as 2026-01-31T12:00:00Z');
  const address = parsed('ip', ip, (one) => parseAddress(one)?.toString(), 'an IP address');
  const devices = devicesOf(preview.device);
  const country = said ?? (address === undefined ? undefined : await countryOf(address));
  const lot = lotOf({}, address ?? '');
  return described({
    address: address ?? '',
    nowMs: at === undefined ? nowMs : Date.parse(at),
    language: () => preferredLanguage(lang),
    devices: () => devices,
    lot: () => lot,
    draw: (ruleId) =>
      draw === undefined ? drawOf(lot, ruleId) : Math.floor((draw / 100) * millionths),
    prepare: () => undefined,
    user: () => (user === undefined ? undefined : { name: user, roles }),
    country: () => country,
  });
}

function described(traits: Omit<Visitor, 'with'>): Visitor {
  const { nowMs } = traits;
  return { ...traits, with: (other) => described({ ...traits, nowMs: other.nowMs ?? nowMs }) };
}

function parsed(
  field: keyof Preview,
  written: string | undefined,
  parse: (text: string) => string | undefined,
  form: string,
): string | undefined {
  if (written === undefined) return undefined;
  const value = parse(written);
  if (value !== undefined) return value;
  throw new Failure('invalid', `${field} must be ${form}.`, { field });
}

function listOf(written: string | undefined): readonly string[] {
  const parts = (written ?? '').split(',').map((part) => part.trim());
  return parts.filter((part) => part !== '').slice(0, userRolesMax);
}

/** A system alone is that of the device that mostly has it: who says ios means a telephone. */
function devicesOf(written: string | undefined): ReadonlySet<DeviceClass> {
  const classes = listOf(written).map((one) => {
    if (isDeviceClass(one)) return one;
    throw new Failure('invalid', `device must be some of ${deviceClasses.join(', ')}.`, {
      field: 'device',
    });
  });
  const has = (...some: readonly DeviceClass[]): boolean =>
    some.some((one) => classes.includes(one));
  const form = has('mobile', 'tablet', 'desktop', 'bot') ? [] : formOf(has);
  return new Set([...classes, ...form]);
}

function formOf(has: (...some: readonly DeviceClass[]) => boolean): readonly DeviceClass[] {
  if (has('ios', 'android')) return ['mobile'];
  return has('windows', 'macos', 'linux') ? ['desktop'] : [];
}
