import bowser from 'bowser';
import { isbot } from 'isbot';
import type { FieldList } from '../../core/http/reply.ts';
import type { Fields } from '../../core/http/request.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import type { DeviceClass } from '../../core/http/visitor.ts';
import { devicesRememberedMax, userAgentCharactersMax } from './limits.ts';

/** Detects the classes of the device that sent a request. */
export type DeviceDetector = (fields: Fields) => ReadonlySet<DeviceClass>;

/**
 * Creates a detector that reads the client hints first (User-Agent Client Hints §3:
 * Sec-CH-UA-Mobile, -Platform and -Form-Factors), then the User-Agent. It caches the latest
 * results, since a browser sends the same fields each time.
 */
export function createDeviceDetector(): DeviceDetector {
  const known = createLruCache<ReadonlySet<DeviceClass>>(devicesRememberedMax);
  return (fields) => {
    const device = readDeviceFields(fields);
    const hints = device.mobile + device.platform + device.formFactors;
    const key = hints === '' ? device.agent : `${hints}\n${device.agent}`;
    let classes = known.get(key);
    if (classes === undefined) {
      classes = classify(device);
      known.set(key, classes);
    }
    return classes;
  };
}

/** The fields that describe a device; empty texts for missing ones. */
interface DeviceFields {
  readonly agent: string;
  readonly mobile: string;
  readonly platform: string;
  readonly formFactors: string;
}

/** Cuts each field at a length that no browser reaches. */
function readDeviceFields(fields: Fields): DeviceFields {
  const short = (name: string): string => fields[name]?.slice(0, userAgentCharactersMax) ?? '';
  return {
    agent: short('user-agent'),
    mobile: short('sec-ch-ua-mobile'),
    platform: short('sec-ch-ua-platform'),
    formFactors: short('sec-ch-ua-form-factors'),
  };
}

const systems: ReadonlyMap<string, DeviceClass> = new Map([
  ['android', 'android'],
  ['ios', 'ios'],
  ['windows', 'windows'],
  ['macos', 'macos'],
  ['linux', 'linux'],
  ['chrome os', 'linux'],
  ['chromium os', 'linux'],
  ['chromeos', 'linux'],
]);

function classify(device: DeviceFields): ReadonlySet<DeviceClass> {
  const agent = device.agent === '' ? undefined : bowser.parse(device.agent);
  const hinted = systems.get(device.platform.replaceAll('"', '').toLowerCase());
  const system = hinted ?? systems.get(agent?.os.name?.toLowerCase() ?? '');
  const form =
    formByHints(device, system) ?? formByAgent(device.agent, agent?.platform.type, system);
  const classes = [isbot(device.agent) ? ('bot' as const) : undefined, form, system];
  return new Set(classes.filter((one) => one !== undefined));
}

function formByHints(
  { mobile, formFactors }: DeviceFields,
  system: DeviceClass | undefined,
): DeviceClass | undefined {
  const factors = formFactors.toLowerCase();
  for (const form of ['tablet', 'mobile', 'desktop'] as const) {
    if (factors.includes(`"${form}"`)) return form;
  }
  if (mobile === '?1') return 'mobile';
  // A phone's operating system on a device that is not a phone: a tablet.
  if (mobile === '?0') return system === 'android' || system === 'ios' ? 'tablet' : 'desktop';
  return undefined;
}

function formByAgent(
  agent: string,
  type: string | undefined,
  system: DeviceClass | undefined,
): DeviceClass | undefined {
  if (type === 'mobile' || type === 'tablet' || type === 'desktop') return type;
  // Some robots name the kind of device that they index for.
  if (type === 'bot') return /\bMobile\b/.test(agent) ? 'mobile' : undefined;
  return type === undefined && system === 'linux' ? 'desktop' : undefined;
}

const formFactors = 'Sec-CH-UA-Form-Factors';

/** Systems of desktops and tablets alike; tablets also claim them to get a desktop's page. */
const unclear: ReadonlySet<string> = new Set(['"linux"', '"chrome os"']);

/**
 * The fields that request Sec-CH-UA-Form-Factors (RFC 8942 §3.1) from a browser whose default hints
 * do not distinguish a tablet from a desktop. Critical-CH makes it repeat the request at once,
 * because most visitors follow a breadcrumb only once. For other browsers that would be a wasted
 * round trip.
 */
export function clientHintFields(fields: Fields): FieldList {
  const platform = fields['sec-ch-ua-platform']?.toLowerCase() ?? '';
  if (fields['sec-ch-ua-mobile'] !== '?0' || !unclear.has(platform)) return [];
  const accept = ['Accept-CH', formFactors];
  return fields['sec-ch-ua-form-factors'] === undefined
    ? [...accept, 'Critical-CH', formFactors]
    : accept;
}
