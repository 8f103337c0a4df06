import { headerBlockBytesMax } from '../../../core/http/limits.ts';
import { deviceClasses, isDeviceClass, type DeviceClass } from '../../../core/http/visitor.ts';
import { clientHintFields } from '../device.ts';
import {
  defineCondition,
  listOf,
  listText,
  textField,
  type ConditionType,
} from '../../../core/pipeline/conditions/condition.ts';

/** `lang`: the visitor's preferred language, or a more specific one: `de` also matches de-CH. */
const lang = defineCondition<readonly string[]>({
  name: 'lang',
  parse: (value) => listOf(value, languageTag),
  holds(tags, { visitor }) {
    const language = visitor.language();
    return language !== undefined && tags.some((tag) => isVariety(language, tag));
  },
  explain(tags, { visitor }) {
    const prefers = visitor.language() ?? 'no language';
    return `It applies to visitors who prefer ${listText(tags)}; the visitor prefers ${prefers}.`;
  },
  vary: ['Accept-Language'],
  needs: {},
  preview: {
    lang: textField(
      'The Accept-Language of the request.',
      (text) => ({ fields: { 'accept-language': text } }),
      { pattern: '^[\\t\\x20-\\x7e]*$', maxLength: headerBlockBytesMax },
    ),
  },
});

/** `device`: the visitor's device, by client hints, or else by the User-Agent. */
const device = defineCondition<readonly DeviceClass[]>({
  name: 'device',
  parse: (value) => listOf(value, (text) => (isDeviceClass(text) ? text : undefined)),
  holds(classes, { visitor }) {
    const devices = visitor.devices();
    return classes.some((one) => devices.has(one));
  },
  explain(classes, { visitor }) {
    const devices = visitor.devices();
    const what =
      devices.size === 0
        ? "the visitor's device is unknown"
        : `the visitor's device is ${listText(devices)}`;
    return `It applies to the devices ${listText(classes)}; ${what}.`;
  },
  vary: ['User-Agent', 'Sec-CH-UA-Mobile', 'Sec-CH-UA-Platform', 'Sec-CH-UA-Form-Factors'],
  needs: {},
  answerFields: ({ fields }) => clientHintFields(fields),
  preview: {
    device: textField(
      "The visitor's device.",
      (text) => {
        const classes = text.split(',').map((part) => part.trim());
        return classes.every(isDeviceClass) ? { devices: withForm(classes) } : undefined;
      },
      { form: `some of ${deviceClasses.join(', ')}`, choices: deviceClasses },
    ),
  },
});

/** `referer`: the host of the page that links here, and hosts below it (`*.example.com`). */
const referer = defineCondition<readonly string[]>({
  name: 'referer',
  parse: (value) => listOf(value, hostPattern),
  holds(hosts, { visitor }) {
    const host = hostOf(visitor.field('referer'));
    return host !== undefined && hosts.some((pattern) => isHostOf(pattern, host));
  },
  explain(hosts, { visitor }) {
    const host = hostOf(visitor.field('referer'));
    const from =
      host === undefined ? 'the request has no Referer' : `this visit comes from ${host}`;
    return `It applies to visits from pages of ${listText(hosts)}; ${from}.`;
  },
  vary: ['Referer'],
  needs: {},
  preview: {
    referer: textField(
      'URL of the page that links here.',
      (text) => (hostOf(text) === undefined ? undefined : { fields: { referer: text } }),
      { form: 'a URL such as https://www.example.com/' },
    ),
  },
});

/** Conditions about what the browser sends. */
export const browserConditions: readonly ConditionType[] = [lang, device, referer];

/** A language tag (RFC 5646 §2.1) in lower case. */
function languageTag(text: string): string | undefined {
  return /^[a-z]{1,8}(?:-[a-z0-9]{1,8}){0,7}$/i.test(text) ? text.toLowerCase() : undefined;
}

function isVariety(language: string, tag: string): boolean {
  if (!language.startsWith(tag)) return false;
  return language.length === tag.length || language[tag.length] === '-';
}

/** Adds the usual form of a device to a system alone: `ios` also means `mobile`. */
function withForm(classes: readonly DeviceClass[]): ReadonlySet<DeviceClass> {
  const has = (...some: readonly DeviceClass[]): boolean =>
    some.some((one) => classes.includes(one));
  if (has('mobile', 'tablet', 'desktop', 'bot')) return new Set(classes);
  if (has('ios', 'android')) return new Set([...classes, 'mobile']);
  return new Set([...classes, ...(has('windows', 'macos', 'linux') ? (['desktop'] as const) : [])]);
}

/** A hostname in lower case, or `*.` and one. */
function hostPattern(text: string): string | undefined {
  const host = text.startsWith('*.') ? text.slice(2) : text;
  const isName = host.length <= hostCharactersMax && !host.includes('*');
  const isHost = isName && hostOf(`http://${host}/`) === host.toLowerCase();
  return isHost ? text.toLowerCase() : undefined;
}

/** The longest name of a host (RFC 1035 §2.3.4). */
const hostCharactersMax = 253;

function hostOf(url: string | undefined): string | undefined {
  if (url === undefined || !/^https?:/i.test(url) || !URL.canParse(url)) return undefined;
  return new URL(url).hostname;
}

function isHostOf(pattern: string, host: string): boolean {
  return pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern;
}
