import type { FieldList } from '../http/reply.ts';
import bowser from 'bowser';
import { isbot } from 'isbot';
import type { Fields } from '../http/request.ts';
import { devicesRememberedMax, userAgentCharactersMax } from './limits.ts';
import { remembered } from '../model/remembered.ts';
import type { DeviceClass } from '../model/visitor.ts';

/** Tells from the fields of a request what device it comes from. */
export type DeviceReader = (fields: Fields) => ReadonlySet<DeviceClass>;

/**
 * Makes a reader that asks the client hints first (User-Agent Client Hints §3: Sec-CH-UA-Mobile,
 * -Platform and -Form-Factors), then the User-Agent, and remembers the latest answers: a browser
 * says the same each time.
 */
export function createDeviceReader(): DeviceReader {
  const known = remembered<ReadonlySet<DeviceClass>>(devicesRememberedMax);
  return (fields) => {
    const said = saidBy(fields);
    const hints = said.mobile + said.platform + said.formFactors;
    const key = hints === '' ? said.agent : `${hints}\n${said.agent}`;
    let classes = known.get(key);
    if (classes === undefined) {
      classes = classify(said);
      known.set(key, classes);
    }
    return classes;
  };
}

/** What a browser says of its device; empty texts for what it leaves out. */
interface Said {
  readonly agent: string;
  readonly mobile: string;
  readonly platform: string;
  readonly formFactors: string;
}

/** No browser says as much: what says more is not read to its end. */
function saidBy(fields: Fields): Said {
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

function classify(said: Said): ReadonlySet<DeviceClass> {
  const agent = said.agent === '' ? undefined : bowser.parse(said.agent);
  const hinted = systems.get(said.platform.replaceAll('"', '').toLowerCase());
  const system = hinted ?? systems.get(agent?.os.name?.toLowerCase() ?? '');
  const form = formByHints(said, system) ?? formByAgent(said.agent, agent?.platform.type, system);
  const classes = [isbot(said.agent) ? ('bot' as const) : undefined, form, system];
  return new Set(classes.filter((one) => one !== undefined));
}

function formByHints(
  { mobile, formFactors }: Said,
  system: DeviceClass | undefined,
): DeviceClass | undefined {
  const factors = formFactors.toLowerCase();
  for (const form of ['tablet', 'mobile', 'desktop'] as const) {
    if (factors.includes(`"${form}"`)) return form;
  }
  if (mobile === '?1') return 'mobile';
  // What runs a telephone's system and is none is a tablet.
  if (mobile === '?0') return system === 'android' || system === 'ios' ? 'tablet' : 'desktop';
  return undefined;
}

function formByAgent(
  agent: string,
  type: string | undefined,
  system: DeviceClass | undefined,
): DeviceClass | undefined {
  if (type === 'mobile' || type === 'tablet' || type === 'desktop') return type;
  // A robot may say which device it looks at a page for.
  if (type === 'bot') return /\bMobile\b/.test(agent) ? 'mobile' : undefined;
  return type === undefined && system === 'linux' ? 'desktop' : undefined;
}

const formFactors = 'Sec-CH-UA-Form-Factors';

/** A system for both, and the one that a tablet claims where it wants a page for desktops. */
const unclear: ReadonlySet<string> = new Set(['"linux"', '"chrome os"']);

/**
 * What is asked of a browser that speaks client hints and has not told a tablet from a desktop (RFC
 * 8942 §3.1): that it does. Critical-CH lets it ask again at once, for a breadcrumb is mostly
 * visited once; where the hints that come by themselves tell all, that would be a round trip for
 * nothing.
 */
export function hintFields(fields: Fields): FieldList {
  const platform = fields['sec-ch-ua-platform']?.toLowerCase() ?? '';
  if (fields['sec-ch-ua-mobile'] !== '?0' || !unclear.has(platform)) return [];
  const accept = ['Accept-CH', formFactors];
  return fields['sec-ch-ua-form-factors'] === undefined
    ? [...accept, 'Critical-CH', formFactors]
    : accept;
}
