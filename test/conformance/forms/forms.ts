/** A form of a path, and what has that name. */
export interface Form {
  /** As an author writes it in a link. */
  readonly written: string;
  /** The name of the file and of the stored page that it means; without it, neither exists. */
  readonly name?: string | Buffer;
}

/** The file of the forms that only spell its name differently. */
const plain = 'a/b.txt';

/** Forms for a browser, which sends some of them in another form. */
export const browserForms: readonly Form[] = [
  { written: '/a/b.txt', name: plain },
  { written: '/a/b.txt?x=1&y', name: plain },
  { written: '/a/b.txt?', name: plain },
  { written: '/a/b.txt?x=|{}[]^`\'"<>', name: plain },
  { written: '/a/b.txt?x=é', name: plain },
  { written: '/a/b.txt?x=%zz', name: plain },
  { written: '/a/b.txt#part', name: plain },
  { written: '/%61/b%2Etxt', name: plain },
  { written: '/a/../a/./b.txt', name: plain },
  { written: '/a/%2e%2E/a/b.txt', name: plain },
  { written: '/a\\b.txt', name: plain },
  { written: '//a/b.txt', name: plain },
  { written: '/a//b.txt', name: plain },
  { written: '/a/b.txt/', name: plain },
  { written: '/A/B.TXT', name: plain },
  { written: '/a%2Fb.txt', name: plain },
  { written: '/@scope%2fpackage' },
  { written: '/api/v4/projects/group%2Fname' },
  { written: '/iiif/2/box:ST%2F0001.jpg/full/max/0/default.jpg' },
  { written: '/api/queues/%2F/name' },
  { written: '/%3F%23%26%2F%20' },
  { written: '/a%5Cb.txt', name: 'a\\b.txt' },
  { written: '/a%252Fb.txt', name: 'a%2Fb.txt' },
  { written: '/100%25.txt', name: '100%.txt' },
  { written: '/%3F%23.txt', name: '?#.txt' },
  { written: '/a|b.txt', name: 'a|b.txt' },
  { written: '/a%7Cb.txt', name: 'a|b.txt' },
  { written: '/a^b.txt', name: 'a^b.txt' },
  { written: '/a[b].txt', name: 'a[b].txt' },
  { written: '/a{b}.txt', name: 'a{b}.txt' },
  { written: '/a`b.txt', name: 'a`b.txt' },
  { written: '/a"b.txt', name: 'a"b.txt' },
  { written: '/a<b>.txt', name: 'a<b>.txt' },
  { written: '/a b.txt', name: 'a b.txt' },
  { written: '/a+b.txt', name: 'a+b.txt' },
  { written: '/a;v=1.txt', name: 'a;v=1.txt' },
  { written: "/~a!$&'()*,=:@.txt", name: "~a!$&'()*,=:@.txt" },
  { written: '/é.txt', name: 'é.txt' },
  { written: '/%c3%a9.txt', name: 'é.txt' },
  { written: '/e%CC%81.txt', name: 'e\u0301.txt' },
  { written: '/日本.txt', name: '日本.txt' },
  { written: '/😀.txt', name: '😀.txt' },
  { written: '/.well-known/a.txt', name: '.well-known/a.txt' },
  { written: '/.hidden.txt', name: '.hidden.txt' },
  { written: '/caf%e9.txt', name: Buffer.from('caf\u00e9.txt', 'latin1') },
  { written: '/%ff%fe.txt', name: Buffer.from([0xff, 0xfe, ...Buffer.from('.txt')]) },
  { written: '/a/..%2fa/b.txt', name: plain },
  { written: '/%c0%ae%c0%ae/a.txt' },
  { written: '/a%00b.txt' },
  { written: '/a%0Ab.txt', name: 'a\nb.txt' },
  { written: '/a%zz.txt' },
  { written: '/a%' },
];

/** Forms that programs send, and no browser. */
export const programForms: readonly Form[] = [
  { written: '/a/../a/b.txt', name: plain },
  { written: '/a/%2e%2e/a/b.txt', name: plain },
  { written: '/a\\b.txt', name: 'a\\b.txt' },
  { written: '/é.txt', name: 'é.txt' },
  { written: '/a"b.txt', name: 'a"b.txt' },
  { written: '/a<b>.txt', name: 'a<b>.txt' },
  { written: '/a{b}.txt', name: 'a{b}.txt' },
  { written: '/a`b.txt', name: 'a`b.txt' },
  { written: '/a b.txt', name: 'a b.txt' },
  { written: '/a|b.txt', name: 'a|b.txt' },
  { written: '/a^b.txt', name: 'a^b.txt' },
  { written: '/a/b.txt#part', name: plain },
  { written: 'http://{host}/a/b.txt', name: plain },
];
