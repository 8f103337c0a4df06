import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { consistencyProblems } from '../../../src/core/config/consistency.ts';
import { convertApache } from '../../../src/modules/convert/apache/convert.ts';
import { convertCaddy } from '../../../src/modules/convert/caddy/convert.ts';
import type { Converted } from '../../../src/modules/convert/conversion.ts';
import { convertNetlify } from '../../../src/modules/convert/netlify/convert.ts';
import { convertNginx } from '../../../src/modules/convert/nginx/convert.ts';
import { Failure } from '../../../src/core/values/failure.ts';
import { configurations, converters } from './configurations.ts';
import { parseIni } from '../../ini.ts';

/** The problems that `check` would find in a converted ini file, without its files. */
function problemsOf({ ini }: Converted): readonly string[] {
  const parsed = parseIni(ini, { env: { UPSTREAM: 'localhost:1', X: '8080' } });
  const all = [...parsed.problems, ...consistencyProblems(parsed)];
  return all.map(({ line, message }) => `${line}: ${message}`);
}

const all = configurations();

suite('configurations as people write them', () => {
  for (const { name, format, text, left } of all) {
    test(name, () => {
      const values = { PORT: '8080', ROOT: '/srv/www', APP: '3000', APP2: '3001' };
      const filled = text.replaceAll(
        /\{\{(\w+)\}\}/g,
        (_, word: keyof typeof values) => values[word],
      );
      const converted = converters[format]?.(filled, name);
      assert.ok(converted);
      assert.deepEqual([...new Set(converted.left.map(({ line }) => line))], left);
      assert.deepEqual(problemsOf(converted), [], converted.ini);
      for (const { line, says, text: shown } of converted.left) {
        assert.ok(line > 0 && says !== '' && shown !== '');
      }
    });
  }

  test('a default_server among several sites no longer answers for other names', () => {
    const listen = (word: string, name: string): string =>
      `server { listen 80${word}; server_name ${name}; root /srv/${name}; }\n`;
    const both = listen('', 'a.example') + listen(' default_server', 'b.example');
    assert.deepEqual(
      convertNginx(both, 'a.conf').notes.map(({ line, says }) => [line, says]),
      [[2, 'names that no server has get 404; `origin` names one more for a section']],
    );
    assert.deepEqual(convertNginx(listen(' default_server', 'b.example'), 'a.conf').notes, []);
  });

  test('most of at least 40 are converted whole', () => {
    const whole = all.filter(({ left }) => left.length === 0);
    assert.ok(all.length >= 40 && whole.length >= 30, `${whole.length} of ${all.length}`);
  });
});

test('a socket that `source` does not express is left', () => {
  const nginx = (url: string) =>
    convertNginx(`server { listen 80; location / { proxy_pass ${url}; } }`, 'a.conf');
  for (const url of ['https://unix:/run/e.sock', 'http://unix:e.sock', 'http://unix:/run/../e']) {
    assert.equal(nginx(url).left.length, 1, url);
  }
  assert.equal(convertCaddy(':80\nreverse_proxy unix+h2c//run/e.sock', 'Caddyfile').left.length, 1);
  const apache = 'ProxyPass "/c/" "unix:/run/c.sock|fcgi://localhost/srv/"';
  assert.equal(convertApache(apache, 'a.conf').left.length, 1);
});

test('an exact path on a socket is a page rule that may reach it', () => {
  const text = 'server { listen 80; location = /d { proxy_pass http://unix:/run/d.sock:/x; } }';
  const converted = convertNginx(text, 'a.conf');
  assert.match(converted.ini, /^allow_private = unix:\/run\/d\.sock$/m);
  assert.deepEqual(problemsOf(converted), []);
});

/** Texts with the sections that they become. */
const nginxTable: readonly (readonly [text: string, ini: string])[] = [
  [
    'server { listen 80; location /a/ { proxy_pass http://b:1/; } location = /c { return 302 /d; } ' +
      'location /c/ { proxy_pass http://b:2/; } location /e/ { proxy_pass http://b:3; } }',
    '[server]\nlisten = :80\n\n' +
      '[proxy.a]\npath = /a/\nsource = http://b:1/\nhost = source\ncache = no\n\n' +
      '[proxy.c]\npath = /c/\nsource = http://b:2/\nhost = source\ncache = no\n\n' +
      '[proxy.e]\npath = /e/\nsource = http://b:3\nhost = source\ncache = no\n\n' +
      '[redirect.a]\npath = /a\nto = /a/\n\n' +
      '[redirect.c]\npath = /c\nto = /d\nstatus = 302\nquery = drop\n',
  ],
  [
    'limit_req_zone $http_x_key zone=a:10m rate=100r/m; limit_req zone=a; server { listen 80; ' +
      'limit_req_zone $binary_remote_addr zone=b:1m rate=9r/s; location /b/ { limit_req zone=b ' +
      'burst=20 nodelay; limit_req_status 429; location /b/c { limit_req zone=b; } } }',
    '[server]\nlisten = :80\n\n' +
      '[rate.site]\nexcept = /b/*, /b/c*\nrate = 100/m\nburst = 1\nby = field:x-key\nstatus = 503\n\n' +
      '[rate.b]\npath = /b/*\nexcept = /b/c*\nrate = 9/s\nburst = 21\n\n' +
      '[rate.b-c]\npath = /b/c*\nrate = 9/s\nburst = 1\n',
  ],
  [
    'server { listen 80; server_name a.example; rewrite ^ http://b.example$request_uri? permanent; }',
    '[server]\nlisten = :80\n\n' +
      '[redirect.a-example]\norigin = http://a.example\nto = "http://b.example{path}"\n',
  ],
  [
    'server { listen 80; rewrite ^/a$ http://b.example/c permanent; }',
    '[server]\nlisten = :80\n\n[redirect.a]\npath = /a\nto = http://b.example/c\n',
  ],
  [
    'server { listen 80; listen [::]:80; listen 127.0.0.1:81; root /srv; index a.html; }',
    '[server]\nlisten[] = :80\nlisten[] = 127.0.0.1:81\n\n[disk.site]\nroot = /srv\nindex = a.html\n',
  ],
  [
    'server { listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key a.key; location /a { proxy_pass http://b:1/c/; } }',
    '[server]\nlisten = https://:443\n\n[tls]\ncert = a.pem\nkey = a.key\n\n' +
      '[proxy.a]\npath = /a/\nsource = http://b:1/c/\nhost = source\ncache = no\n',
  ],
  [
    'server { listen 80; location / { proxy_pass http://b:1; proxy_cache c; client_max_body_size 0; } }',
    '[server]\nlisten = :80\n\n[proxy.site]\nsource = http://b:1\nhost = source\nmax_body = 1024GiB\n',
  ],
  [
    'upstream u { server unix:/run/a.sock weight=2; server b:1; } server { listen 80; ' +
      'location / { proxy_pass http://u; } location /b/ { proxy_pass http://unix:/run/b.sock; } ' +
      'location /c/ { proxy_pass http://unix:/run/c.sock:/; } }',
    '[server]\nlisten = :80\n\n' +
      '[proxy.site]\nsource[] = unix:/run/a.sock\nsource[] = http://b:1\nhost = source\ncache = no\nweight = 2, 1\n\n' +
      '[proxy.b]\npath = /b/\nsource = unix:/run/b.sock\nhost = source\ncache = no\n\n' +
      '[proxy.c]\npath = /c/\nsource = unix:/run/c.sock:/\nhost = source\ncache = no\n\n' +
      '[redirect.c]\npath = /c\nto = /c/\n',
  ],
  [
    'server { listen 80; server_name b; if ($host = a.example) { return 301 http://b$request_uri; } root /s; }',
    '[server]\nlisten = :80\n\n[disk.site]\nroot = /s\n\n' +
      '[redirect.a-example]\norigin = http://a.example\nto = "http://b{path}"\n',
  ],
];

const caddyTable: readonly (readonly [text: string, ini: string])[] = [
  [
    ':80 {\n\treverse_proxy unix//run/app.sock app:1\n' +
      '\thandle_path /b/* {\n\t\treverse_proxy unix//run/b.sock\n\t}\n' +
      '\tforward_auth /d/* unix//run/auth.sock {\n\t\turi /verify\n\t}\n}',
    '[server]\nlisten[] = :80\n\n' +
      '[proxy.site]\nsource[] = unix:/run/app.sock\nsource[] = http://app:1\ncache = no\n\n' +
      '[proxy.b]\npath = /b/\nsource = unix:/run/b.sock:/\ncache = no\n\n' +
      '[access.d]\npath = /d/*\nforward = unix:/run/auth.sock:/verify\n',
  ],
  [
    'example.com {\n\treverse_proxy app:1 {\n\t\theader_up -X-A\n\t\theader_down +Link x\n\t}\n}',
    '[server]\nlisten[] = :80\nlisten[] = https://:443\n\n[tls.example.com]\nacme = yes\n\n' +
      '[proxy.site]\nsource = http://app:1\ncache = no\n\n[proxy.site.request_headers]\nX-A =\n\n' +
      '[proxy.site.headers]\nLink[] = x\n',
  ],
  [
    ':80\nroot * /srv\nfile_server browse\nrespond /a `b` 201',
    '[server]\nlisten[] = :80\nimport = rules.ndjson\n\n' +
      '[disk.site]\nroot = /srv\nindex = index.html, index.txt\nlisting = yes\n',
  ],
  [
    ':80 {\n\tredir https://{host}{uri}\n\tlog {\n\t\toutput file a.log\n\t}\n}',
    '[server]\nlisten[] = :80\n\n[log]\nformat = json\nfile = a.log\n\n' +
      '[redirect.site]\nto = "https://{host}{path}"\nstatus = 302\n',
  ],
];

const apacheTable: readonly (readonly [text: string, ini: string])[] = [
  [
    'DocumentRoot /s\nProxyPass "/a/" "unix:/run/a.sock|http://localhost/a/"\n' +
      'ProxyPass "/b/" "unix:/run/b.sock|http://localhost/"',
    '[disk.site]\nroot = /s\n\n' +
      '[proxy.a]\npath = /a/\nsource = unix:/run/a.sock\nhost = source\ncache = no\n\n' +
      '[proxy.b]\npath = /b/\nsource = unix:/run/b.sock:/\nhost = source\ncache = no\n',
  ],
  [
    'DirectoryIndex start.html\nRedirect 301 /a /b\nHeader append Link "<a>"',
    '[disk.site]\nroot = .\nindex = start.html\n\n[redirect.a]\npath = /a\nto = /b\n\n' +
      '[redirect.a-2]\npath = /a/*\nto = "/b/{splat}"\n\n[headers.site]\nLink[] = "<a>"\n',
  ],
  [
    '<VirtualHost *:80>\nServerName a.example\nProxyPass / http://b:1/\n</VirtualHost>',
    '[server]\nlisten[] = :80\n\n[proxy.site]\nsource = http://b:1\nhost = source\ncache = no\n',
  ],
];

suite('what directives become', () => {
  for (const [text, ini] of nginxTable) {
    test(text, () => {
      assert.equal(convertNginx(text).ini, ini);
    });
  }
  for (const [text, ini] of caddyTable) {
    test(text, () => {
      assert.equal(convertCaddy(text).ini, ini);
    });
  }
  for (const [text, ini] of apacheTable) {
    test(text, () => {
      assert.equal(convertApache(text).ini, ini);
    });
  }

  test('each field of a name is a line', () => {
    const { ini } = convertNginx(
      'server { root /s; add_header A 1; add_header A 2; add_header A 3; }',
    );
    assert.match(ini, /^A = 1\nA\[\] = 2\nA\[\] = 3$/m);
  });

  test('a fixed answer is a page rule', () => {
    const { rules } = convertNginx('server { location = /up { return 200 "a\\n"; } }');
    const answer = { content: 'a\n', contenttype: 'text/plain' };
    assert.deepEqual(rules, [{ path: '/up', kind: 'content', ...answer }]);
  });

  test('_headers and netlify.toml become the same sections', () => {
    const lines = convertNetlify('/a/*\n  X-A: b\n', '_headers').ini;
    const toml = convertNetlify(
      '[[headers]]\nfor = "/a/*"\n[headers.values]\nX-A = "b"',
      'netlify.toml',
    );
    assert.equal(toml.ini, lines);
    assert.match(lines, /^\[headers\.a\]\npath = \/a\/\*\nX-A = b$/m);
  });
});

/** Texts with the sections about access that they become. */
const accessTable: readonly (readonly [format: string, text: string, sections: string])[] = [
  [
    'nginx',
    'server { root /s; location ~ \\.(sql|bak)$ { deny all; } }',
    '[access.sql]\npath = *.sql, *.bak\ndeny = 0.0.0.0/0, ::/0\n',
  ],
  [
    'nginx',
    'server { root /s; deny 10.0.0.1; allow 10.0.0.0/8; allow ::1; deny all; }',
    '[access.site]\nallow = 10.0.0.0/8, ::1\ndeny = 10.0.0.1\n',
  ],
  [
    'nginx',
    'server { root /s; location /a/ { deny 10.0.0.1; allow all; } }',
    '[access.a]\npath = /a/*\ndeny = 10.0.0.1\n',
  ],
  [
    'nginx',
    'server { root /s; auth_basic a; auth_basic_user_file /u; location /open/ { auth_basic off; } }',
    '[access.site]\nexcept = /open/*\npassword_file = /u\n',
  ],
  [
    'nginx',
    'server { root /s; auth_basic_user_file /u; satisfy any; location /a { auth_basic a; allow 10.0.0.0/8; deny all; } location /a/b { } }',
    '[access.a]\npath = /a*\nexcept = /a/b*\nallow = 10.0.0.0/8\npassword_file = /u\nsatisfy = any\n',
  ],
  [
    'nginx',
    'upstream u { server a:1; } server { auth_request /q; location = /q { internal; proxy_pass http://u/v; } location / { proxy_pass http://b:1; } location /o/ { auth_request off; proxy_pass http://b:1; } }',
    '[access.site]\nexcept = /o/*\nforward = http://a:1/v\n',
  ],
  [
    'nginx',
    'server { root /s; satisfy any; location = /q { internal; proxy_pass http://a:1; } location /a/ { auth_request /q; auth_request_set $u $upstream_http_remote_user; proxy_set_header Remote-User $u; allow 10.0.0.0/8; deny all; proxy_pass http://b:1; } }',
    '[access.a]\npath = /a/*\nallow = 10.0.0.0/8\nforward = http://a:1/q\ncopy = Remote-User\nsatisfy = any\n',
  ],
  [
    'nginx',
    'server { root /s; location = /q { internal; proxy_pass http://unix:/run/auth.sock:/v; } location / { auth_request /q; proxy_pass http://unix:/run/app.sock; } }',
    '[access.site]\nforward = unix:/run/auth.sock:/v\n',
  ],
  [
    'nginx',
    'server { listen 443 ssl; ssl_certificate a; ssl_certificate_key b; ssl_client_certificate /ca.pem; ssl_verify_client on; root /s; }',
    '[access.site]\nclient_certificate = /ca.pem\n',
  ],
  [
    'nginx',
    'server { listen 443 ssl; ssl_certificate a; ssl_certificate_key b; ssl_client_certificate /ca.pem; ssl_verify_client optional; root /s; location /a/ { if ($ssl_client_verify != "SUCCESS") { return 403; } } }',
    '[access.a]\npath = /a/*\nclient_certificate = /ca.pem\n',
  ],
  [
    'nginx',
    'server { root /s; location ~* \\.(php|sql)$ { return 403; } location = /a.txt { return 404; } }',
    '[access.php]\npath = *.php, *.sql\nexcept = /a.txt\ndeny = 0.0.0.0/0, ::/0\n\n[access.a-txt]\npath = /a.txt\ndeny = 0.0.0.0/0, ::/0\n',
  ],
  [
    'apache',
    'AuthType Basic\nAuthName "Staff"\nAuthUserFile /u\nRequire valid-user',
    '[access.site]\npassword_file = /u\n',
  ],
  [
    'caddy',
    ':80\nfile_server\nrespond /a/* 403',
    '[access.a]\npath = /a/*\ndeny = 0.0.0.0/0, ::/0\n',
  ],
  ['nginx', 'server { root /s; location ~ /\\. { deny all; } }', ''],
  [
    'caddy',
    'a.example {\n\ttls {\n\t\tclient_auth {\n\t\t\ttrust_pool file /ca.pem\n\t\t}\n\t}\n\treverse_proxy b:1\n}',
    '[access.site]\nclient_certificate = /ca.pem\n',
  ],
  [
    'caddy',
    'http://a.example {\n\troot /s\n\tfile_server\n\tbasic_auth /a/* {\n\t\tann $2a$14$x\n\t}\n}',
    '[access.a]\npath = /a/*\npassword_file = users.txt\n',
  ],
  [
    'caddy',
    ':80 {\n\tforward_auth auth:9 {\n\t\turi /v\n\t\tcopy_headers Remote-User Remote-Groups\n\t}\n\tfile_server\n}',
    '[access.site]\nforward = http://auth:9/v\ncopy = Remote-User, Remote-Groups\n',
  ],
];

suite('who may see a page is converted', () => {
  for (const [format, text, sections] of accessTable) {
    test(`${format}: ${text}`, () => {
      const converted = converters[format]?.(text, '');
      assert.ok(converted);
      const found = /^\[access\.[^]*?(?=^\[(?!access)|(?![^]))/m.exec(converted.ini)?.[0] ?? '';
      assert.equal(found.trim(), sections.trim());
      assert.deepEqual([converted.left, problemsOf(converted)], [[], []]);
    });
  }

  test('users of a Caddyfile become a file of their own', () => {
    const block = '{\n\t\tann $2a$14$x\n\t\tbob $2a$14$y\n\t}';
    const text = `:80 {\n\tbasic_auth /a/* ${block}\n\tbasic_auth /b/* ${block}\n\tfile_server\n}`;
    const { files } = convertCaddy(text);
    assert.deepEqual(Object.keys(files), ['users.txt', 'users-2.txt']);
    assert.equal(files['users.txt'], 'ann:$2a$14$x\nbob:$2a$14$y\n');
  });
});

test('the choice of a server and its checks are converted', () => {
  const nginx = convertNginx(
    'upstream u { server a:1 weight=5; server b:1; server c:1 backup; sticky cookie s; } ' +
      'server { listen 80; location / { proxy_pass http://u; health_check uri=/up interval=5; } }',
  );
  assert.match(
    nginx.ini,
    /^balance = cookie\nweight = 5, 1, 0\nhealth = \/up\nhealth_interval = 5s$/m,
  );
  const caddy = convertCaddy(
    ':80 {\n\treverse_proxy a:1 b:1 {\n\t\tlb_policy weighted_round_robin 3 1\n\t\thealth_uri /up\n\t}\n}',
  );
  assert.match(caddy.ini, /^balance = turn\nweight = 3, 1\nhealth = \/up$/m);
  assert.deepEqual(
    [nginx.left, caddy.left, problemsOf(nginx), problemsOf(caddy)],
    [[], [], [], []],
  );
});

suite('a line that keeps somebody out is never dropped', () => {
  const table: readonly (readonly [format: string, text: string])[] = [
    ['nginx', 'server { root /s; location /a/ { allow 10.0.0.0/8; deny 10.0.0.1; } }'],
    ['nginx', 'server { root /s; location /a/ { auth_basic a; auth_basic_user_file $f; } }'],
    ['nginx', 'server { root /s; location /a/ { internal; } }'],
    ['nginx', 'server { root /s; location /a/ { return 403; } location /a/b/ { } }'],
    ['nginx', 'server { root /s; location /a/ { return 403; } location ~ ^/a/(b|c) { } }'],
    ['nginx', 'server { root /s; location ~ /(conf|data)/ { deny all; } }'],
    ['nginx', 'server { root /s; auth_basic "a"; }'],
    ['nginx', 'server { root /s; location /a/ { auth_request /missing; } }'],
    ['nginx', 'server { root /s; auth_request $uri; }'],
    ['nginx', 'server { root /s; ssl_verify_client on; }'],
    ['nginx', 'server { root /s; ssl_client_certificate /c; ssl_verify_client optional; }'],
    ['nginx', 'server { root /s; if ($ssl_client_verify != SUCCESS) { return 403; } }'],
    ['nginx', 'http { auth_request /a; server { root /s; } }'],
    [
      'caddy',
      'a.example {\n\ttls {\n\t\tclient_auth {\n\t\t\tmode request\n\t\t}\n\t}\n\tfile_server\n}',
    ],
    ['nginx', 'server { root /s; if ($remote_addr != 10.0.0.1) { return 403; } }'],
    ['caddy', ':80\nfile_server\nerror /a/* 404'],
    ['caddy', ':80 {\n\thandle /a/* {\n\t\tbasic_auth {\n\t\t\tb c\n\t\t}\n\t}\n}'],
    ['caddy', ':80\n@a not remote_ip 10.0.0.0/8\nabort @a'],
    ['caddy', ':80 {\n\tfile_server {\n\t\thide a.txt\n\t}\n}'],
    ['apache', '<FilesMatch "\\.(sql|bak)">\nRequire all denied\n</FilesMatch>'],
    ['apache', '<Files "a.txt">\nDeny from all\n</Files>'],
    ['apache', '<Directory /srv/x>\nRequire ip 10.0.0.0/8\n</Directory>'],
    ['apache', 'RewriteRule ^a/ - [F]'],
    ['apache', 'Require valid-user'],
    ['apache', 'AuthType Basic\nAuthUserFile /u\nRequire user ann'],
    ['apache', 'AuthType Basic\nAuthUserFile /u\nRequire valid-user\nRequire ip 10.0.0.0/8'],
    ['apache', 'AuthType Digest\nAuthUserFile /u\nRequire valid-user'],
    ['netlify', '/a/*\n  Basic-Auth: a:b'],
  ];
  for (const [format, text] of table) {
    test(`${format}: ${text}`, () => {
      const converted = converters[format]?.(text, '_headers');
      assert.notDeepEqual(converted?.left, []);
    });
  }
});

suite('bad input', () => {
  const brokenTable: readonly (readonly [format: string, text: string, message: string])[] = [
    ['nginx', 'server {\n listen 80;\n', 'line 1: this block has no `}`'],
    ['nginx', 'server {\n}\n}', 'line 3: a `}` without its `{`'],
    ['nginx', 'a;\nb "c', 'line 2: `"` has no end'],
    ['nginx', 'a', 'line 1: the last directive has no `;`'],
    ['nginx', 'a {\n b }', 'line 2: `}` before the `;` of a directive'],
    ['nginx', ';', 'line 1: `;` without a directive'],
    ['nginx', 'a {'.repeat(40), 'line 1: the blocks nest too deep'],
    ['caddy', 'a.example {\n', 'line 1: this block has no }'],
    ['caddy', ':80\n}\n', 'line 2: a } without its {'],
    ['caddy', ':80\nrespond "a', 'line 2: " has no end'],
    ['caddy', ':80\nrespond <<END\na\n', 'line 2: the text after <<END has no end'],
    [
      'caddy',
      '(a) {\n\timport a\n}\n:80 {\n\timport a\n}',
      'line 2: the snippets import each other without end',
    ],
    ['apache', '<VirtualHost *:80>\n', 'line 1: <VirtualHost *:80> has no end'],
    ['apache', '\n</Directory>', 'line 2: </Directory> without its start'],
    ['netlify', 'a = = 1', 'line 1: '],
  ];
  test('words of a Caddyfile that begin with a backslash stay in their line', () => {
    const { left } = convertCaddy(':80\nheader X-A \\d \\e\nfile_server');
    assert.deepEqual(
      left.map(({ line, text }) => [line, text]),
      [[2, 'header X-A \\d \\e']],
    );
  });

  for (const [format, text, message] of brokenTable) {
    test(`${format}: ${text.slice(0, 30)}`, () => {
      assert.throws(
        () => converters[format]?.(text, 'netlify.toml'),
        (error) =>
          error instanceof Failure && error.code === 'invalid' && error.message.startsWith(message),
      );
    });
  }

  test('unknown words are left, each with its line', () => {
    const { left } = convertNginx(
      'server {\n listen 80;\n banana 1;\n location / {\n  apple;\n }\n}',
    );
    assert.deepEqual(
      left.map(({ line, text }) => `${line}: ${text}`),
      ['3: banana 1', '5: apple'],
    );
  });

  test('a line that check would refuse becomes a comment, and is left', () => {
    const converted = convertNginx(
      'server {\n root /s;\n add_header Date x;\n add_header X-É y;\n}',
    );
    assert.deepEqual(
      converted.left.map(({ line }) => line),
      [3, 4],
    );
    assert.match(converted.ini, /^;Date = x$/m);
    assert.deepEqual(problemsOf(converted), []);
  });

  test('a header value with a line break is no line of the ini file', () => {
    const converted = convertNginx(
      'server { root /s; add_header X-A "a\\n[auth]\\nanonymous = admin"; }',
    );
    assert.deepEqual(problemsOf(converted), []);
    assert.doesNotMatch(converted.ini, /^\[auth\]/m);
    assert.equal(converted.left.length, 1);
  });

  test('two proxies on one path are a left line', () => {
    const text =
      'server {\n location /a { proxy_pass http://b:1; }\n location /a/ { proxy_pass http://c:1; }\n}';
    const converted = convertNginx(text);
    assert.deepEqual(
      converted.left.map(({ line }) => line),
      [3],
    );
    assert.deepEqual(problemsOf(converted), []);
  });

  test('redirects in a circle are left lines', () => {
    const converted = convertNetlify('/a /b 301\n/b /a 301\n', '_redirects');
    assert.ok(converted.left.length > 0);
    assert.deepEqual(problemsOf(converted), []);
  });

  const words = [
    ...[
      'server',
      'location',
      '/',
      '/a/',
      '~',
      '\\.js$',
      'proxy_pass',
      'http://b:1',
      'return',
      '301',
    ],
    ...['root', 'add_header', 'X-A', '$host', '{', '}', ';', '"', "'", '\n', '#', '*', ':80', '@a'],
    ...['reverse_proxy', 'redir', 'header', 'respond', 'handle', 'file_server', 'import', '{path}'],
    ...['<VirtualHost *:80>', '</VirtualHost>', 'RewriteRule', '^(.*)$', '[R]', 'Header', 'set'],
    ...['[[redirects]]', 'from = "/a"', '200', ':splat', '!', '=', '[', ']', '${', 'é', '\0', '\r'],
  ];
  const anyText = fc
    .array(fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 4 })), { maxLength: 40 })
    .map((pieces) => pieces.join(' '));

  test('any text gives a valid ini file, or a failure with a line', () => {
    const names = ['_redirects', '_headers', 'netlify.toml'];
    const jobs = [
      ...['nginx', 'caddy', 'apache'].map((format) => [format, ''] as const),
      ...names.map((name) => ['netlify', name] as const),
    ];
    fc.assert(
      fc.property(anyText, fc.constantFrom(...jobs), (text, [format, name]) => {
        let converted: Converted | undefined;
        try {
          converted = converters[format]?.(text, name);
        } catch (error) {
          assert.ok(error instanceof Failure && /^line \d+: /.test(error.message), String(error));
          return;
        }
        assert.ok(converted);
        assert.deepEqual(problemsOf(converted), [], converted.ini);
      }),
      { numRuns: 500 },
    );
  });
});
