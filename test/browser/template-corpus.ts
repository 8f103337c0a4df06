/** A template that shows a value `v` that any visitor may choose. */
interface HostileValue {
  readonly what: string;
  readonly template: string;
  readonly value: string;
}

const hit = 'window.hit = true';
const anchor = (attribute: string) => `<a ${attribute}>press</a>`;
/** Values that try to run code where a template shows them as `v`. */
export const hostileValues: readonly HostileValue[] = [
  { what: 'a script', template: '{{ v }}', value: `<script>${hit}</script>` },
  { what: 'a handler', template: '{{ v }}', value: `<img src="data:," onerror="${hit}">` },
  { what: 'a raw script', template: '{{ v | raw }}', value: `<script>${hit}</script>` },
  { what: 'a raw handler', template: '{{ v | raw }}', value: `<img src=x: onerror="${hit}">` },
  { what: 'a raw SVG', template: '{{ v | raw }}', value: `<svg onload="${hit}"></svg>` },
  {
    what: 'a script in an SVG',
    template: '{{ v | raw }}',
    value: `<svg><script>${hit}</script></svg>`,
  },
  { what: 'another document', template: '{{ v | raw }}', value: '<iframe srcdoc="x"></iframe>' },
  {
    what: 'a document as data',
    template: '<iframe src="{{ v }}"></iframe>',
    value: 'data:text/html,x',
  },
  { what: 'the end of an attribute', template: anchor('title="{{ v }}"'), value: `" onclick="` },
  {
    what: 'an attribute without quotes',
    template: anchor('title={{ v }}'),
    value: `x onclick=${hit.replaceAll(' ', '')}`,
  },
  {
    what: 'code as an address',
    template: anchor('href="{{ v }}"'),
    value: `javascript:${hit}`,
  },
  {
    what: 'code behind blanks and in capitals',
    template: anchor('href="{{ v }}"'),
    value: ` \tJaVa\nScRiPt:${hit}`,
  },
  {
    what: 'code as an address in an SVG',
    template: '<svg width="90" height="30">{{ v | raw }}</svg>',
    value: `<a xlink:href="javascript:${hit}"><text y="20">press</text></a>`,
  },
  {
    what: 'an address that is changed later',
    template: '<svg width="90" height="30">{{ v | raw }}</svg>',
    value:
      `<a><animate attributeName="href" values="javascript:${hit}" dur="1s" ` +
      'repeatCount="indefinite"/><text y="20">press</text></a>',
  },
  {
    what: 'a button that sends elsewhere',
    template: '<form action="/no"><button formaction="{{ v }}">press</button></form>',
    value: `javascript:${hit}`,
  },
  {
    what: 'a form whose action is code',
    template: '<form action="{{ v }}"><button>press</button></form>',
    value: `javascript:${hit}`,
  },
  { what: 'another base', template: '{{ v | raw }}', value: '<base href="https://x.example/">' },
  {
    what: 'a way off the page',
    template: '{{ v | raw }}',
    value: '<meta http-equiv="refresh" content="0;url=/other">',
  },
  { what: 'more Liquid', template: '{{ v }}', value: "{{ 'x' | upcase }}" },
  {
    what: 'markup that is something else when it is read again',
    template: '{{ v | raw }}',
    value:
      '<math><mtext><table><mglyph><style><!--</style>' +
      `<img title="--&gt;&lt;img src=x: onerror=${hit.replaceAll(' ', '')}&gt;">`,
  },
];

/** Templates that must have the same result in a browser and on the server. */
export const templates: readonly object[] = [
  { template: '<h1>{{ capture | capitalize }}</h1><p>{{ path }} {{ query.by | join: "+" }}</p>' },
  {
    title: '{{ capture }} & more',
    template: "{% for one in data.lamps %}{% render 'line', lamp: one %}{% endfor %}",
    partials: { line: '<li class="lamp">{{ lamp.name }}: {{ lamp.price | round: 2 }}</li>' },
    data: {
      lamps: [
        { name: 'Tern & Co', price: 1.239 },
        { name: '<b>Heron</b>', price: 2 },
      ],
    },
    css: 'li::before { content: "</style>" }',
  },
  { template: '<h2>First <em>heading</em></h2><table><tr><td>1<td>2<tr><td>3</table>' },
  { template: '<pre>\n\nlines\n</pre><textarea>\n\n{{ query.by }}</textarea><p>a<p>b<br>c' },
  {
    template:
      '<p title="{{ query.by }}" id=location name=body data-x=1 aria-label="é">ü &nbsp; &amp;lt;',
  },
  { template: "{{ '2026-03-01T23:30:00Z' | date: '%A %d %B %Y %H:%M' }}" },
  { template: "{{ '2026-03-01T23:30:00Z' | date: '%H:%M' }}", time_zone: 'Europe/Zurich' },
  { template: '<svg viewBox="0 0 9 9"><path d="M0 0"/><title>x</title><use href="#a"/></svg>' },
  { template: '<form action="/a"><input name=attributes><button>go</button></form><div><p></div>' },
  { template: '<a href="//x.example" target="_blank">x</a><a href="mailto:a@b.example">m</a>' },
  { template: '<custom-part><slot>1</slot></custom-part><template><p>t</template><!-- c -->' },
  { template: '<select><option selected>1<option>2</select><details open><summary>s</summary>' },
  { template: '<math><mi>x</mi><annotation-xml encoding="text/html"><p>y</annotation-xml></math>' },
  {
    template:
      '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" alt=""><video controls></video>',
  },
  { template: '{% if user %}{{ user.name }}{% else %}nobody{% endif %} {{ lang }} {{ origin }}' },
];
