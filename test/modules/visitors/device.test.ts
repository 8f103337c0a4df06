import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { createDeviceDetector, clientHintFields } from '../../../src/modules/visitors/device.ts';

const read = createDeviceDetector();
const chrome = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0';
const agents = {
  iphone:
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1',
  ipad: 'Mozilla/5.0 (iPad; CPU OS 12_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/12.1 Mobile/15E148 Safari/604.1',
  mac: 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15',
  android: `Mozilla/5.0 (Linux; Android 10; K) ${chrome} Mobile Safari/537.36`,
  androidTablet: `Mozilla/5.0 (Linux; Android 10; K) ${chrome} Safari/537.36`,
  firefoxTablet: 'Mozilla/5.0 (Android 14; Tablet; rv:127.0) Gecko/127.0 Firefox/127.0',
  windows: `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${chrome} Safari/537.36`,
  linux: 'Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0',
  chromebook: `Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${chrome} Safari/537.36`,
  googlebot: `Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) ${chrome} Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)`,
  curl: 'curl/8.5.0',
  television:
    'Mozilla/5.0 (SMART-TV; LINUX; Tizen 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Version/5.0 TV Safari/537.36',
};

type Cases = readonly (readonly [
  title: string,
  fields: Readonly<Record<string, string>>,
  classes: string,
])[];

function check(cases: Cases): void {
  for (const [title, fields, classes] of cases) {
    test(title, () => {
      assert.equal([...read(fields)].toSorted().join(' '), classes);
      assert.equal(read({ ...fields }), read(fields), 'found out once');
    });
  }
}

suite('a device by its User-Agent', () => {
  const of = (name: keyof typeof agents) => ({ 'user-agent': agents[name] });
  check([
    ['a telephone of Apple', of('iphone'), 'ios mobile'],
    ['a tablet of Apple', of('ipad'), 'ios tablet'],
    ['a computer of Apple, and a newer tablet that says it is one', of('mac'), 'desktop macos'],
    ['a telephone with Android', of('android'), 'android mobile'],
    ['a tablet with Android', of('androidTablet'), 'android tablet'],
    ['a tablet that says so', of('firefoxTablet'), 'android tablet'],
    ['a computer with Windows', of('windows'), 'desktop windows'],
    ['a computer with Linux', of('linux'), 'desktop linux'],
    ['a Chromebook', of('chromebook'), 'desktop linux'],
    ['a robot that looks at pages for telephones', of('googlebot'), 'android bot mobile'],
    ['a tool', of('curl'), 'bot'],
    ['a television', of('television'), ''],
    ['nothing', {}, ''],
    ['an empty one', { 'user-agent': '' }, ''],
    ['a name of JavaScript', { 'user-agent': '__proto__' }, 'bot'],
    ['one without end', { 'user-agent': `${agents.iphone} ${'x'.repeat(30_000)}` }, 'ios mobile'],
  ]);
});

suite('a device by its client hints, before its User-Agent', () => {
  const hints = (mobile: string, platform: string, more: object = {}) => ({
    'user-agent': agents.windows,
    'sec-ch-ua-mobile': mobile,
    'sec-ch-ua-platform': platform,
    ...more,
  });
  const form = (factors: string) => ({ 'sec-ch-ua-form-factors': factors });
  check([
    ['a telephone', hints('?1', '"Android"'), 'android mobile'],
    ['a tablet', hints('?0', '"Android"'), 'android tablet'],
    ['a computer', hints('?0', '"macOS"'), 'desktop macos'],
    ['a tablet that says so', hints('?0', '"Linux"', form('"Tablet"')), 'linux tablet'],
    ['one of two forms', hints('?1', '"Android"', form('"Mobile", "EInk"')), 'android mobile'],
    ['a system that is not known', hints('?0', '"Fuchsia"'), 'desktop windows'],
    ['hints that are none', hints('yes', 'Windows'), 'desktop windows'],
    [
      'a robot with hints',
      { ...hints('?1', '"Android"'), 'user-agent': agents.googlebot },
      'android bot mobile',
    ],
  ]);
});

suite('Sec-CH-UA-Form-Factors is requested', () => {
  const asked = (mobile?: string, platform?: string, form?: string) => {
    const fields = clientHintFields({
      'sec-ch-ua-mobile': mobile,
      'sec-ch-ua-platform': platform,
      'sec-ch-ua-form-factors': form,
    });
    return fields.filter((_, at) => at % 2 === 0).join(' ');
  };
  const cases: readonly (readonly [string, string, string])[] = [
    ['of a browser without hints', asked(), ''],
    ['of a telephone, which is clear', asked('?1', '"Android"'), ''],
    ['of a computer with a system of its own', asked('?0', '"Windows"'), ''],
    ['of a tablet, which is clear', asked('?0', '"Android"'), ''],
    ['at once, of what may be a tablet', asked('?0', '"Chrome OS"'), 'Accept-CH Critical-CH'],
    ['at once, of a desktop page on a tablet', asked('?0', '"Linux"'), 'Accept-CH Critical-CH'],
    ['not again, once they came', asked('?0', '"Linux"', '"Desktop"'), 'Accept-CH'],
  ];
  for (const [title, names, wanted] of cases) {
    test(title, () => {
      assert.equal(names, wanted);
    });
  }
});
