import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startClient } from '../../cli/here.ts';

test('waymark draft: made, filled by --draft, compared, published and undone', async (t) => {
  const { waymark, out } = await startClient(t);
  await out('draft', 'insert', 'spring', '--comment', 'For May');
  assert.match(await out('draft', 'list'), / open +\S+ +spring +For May/);
  const page = '{"path":"/a","content":"drafted"}';
  const { id } = JSON.parse(await out('rule', 'insert', page, '--draft', 'spring')) as {
    id: string;
  };
  assert.equal((await waymark('rule', 'read', id)).code, 1);
  assert.match(await out('rule', 'read', id, '--draft', 'spring'), /drafted/);
  assert.match(await out('explain', '/a', '--draft', 'spring'), /200/);
  assert.match(await out('draft', 'changes', 'spring'), /"becomes": "inserted"/);
  const compared = await out('draft', 'compare', 'spring', '--urls', '/a\n/b');
  assert.match(compared, /^\/a {2}status, headers, content \(.*\n {2}live {3}404 none/);
  const report = await out('draft', 'publish', 'spring');
  assert.match(report, /insert 1, change 0 and remove 0 records/);
  const digest = /--confirm (\S+)/.exec(report)?.[1] ?? '';
  const done = await out('draft', 'publish', 'spring', '--confirm', digest);
  assert.match(done, /To undo this: waymark draft undo "spring"/);
  assert.match(await out('rule', 'read', id), /drafted/);
  const ended = await waymark('rule', 'read', id, '--draft', 'spring');
  assert.match(ended.err, /The draft was published/);
  await out('rule', 'edit', id, '{"content":"later"}');
  const undo = await out('draft', 'undo', 'spring');
  assert.match(undo, /would delete 1, restore 0 and change 0 records/);
  assert.match(undo, /content: "drafted", live now "later" would be null/);
  assert.match(undo, /--others undo/);
  const chosen = await out('draft', 'undo', 'spring', '--others', 'undo');
  const confirm = /--confirm (\S+)/.exec(chosen)?.[1] ?? '';
  const undone = await out('draft', 'undo', 'spring', '--others', 'undo', '--confirm', confirm);
  assert.match(undone, /^Undone: 1 record as before/);
  assert.equal((await waymark('rule', 'read', id)).code, 1);
});

test('waymark draft publish --at: scheduled in a time zone, listed and cancelled', async (t) => {
  const { waymark, out } = await startClient(t);
  assert.match((await waymark('schedule', 'list')).err, /Nothing is scheduled/);
  await out('draft', 'insert', 'spring');
  await out('rule', 'insert', '{"path":"/a","content":"drafted"}', '--draft', 'spring');
  const report = await out('draft', 'publish', 'spring');
  const digest = /--confirm (\S+)/.exec(report)?.[1] ?? '';
  const at = ['--at', '2999-12-01T08:00', '--time-zone', 'Europe/Berlin'];
  const made = await out('draft', 'publish', 'spring', ...at, '--confirm', digest);
  assert.match(made, /^Scheduled for 2999-12-01 08:00 Europe\/Berlin\./);
  const listed = await out('schedule', 'list');
  assert.match(listed, /2999-12-01 08:00 Europe\/Berlin +publish spring +waits/);
  assert.match(await out('draft', 'list'), /spring/);
  await out('draft', 'unschedule', 'spring');
  assert.match((await waymark('schedule', 'list')).err, /Nothing is scheduled/);
  const past = await waymark('draft', 'publish', 'spring', '--at', '2020-01-01T08:00Z');
  assert.match(past.err, /has passed/);
});

test('waymark draft compare: a long list in parts, with its progress, and what differs', async (t) => {
  const { waymark, out } = await startClient(t);
  const breadcrumb = (target: string): string =>
    JSON.stringify({ path: 'go', kind: 'resolve', enginedata: { target } });
  const { id } = JSON.parse(await out('rule', 'insert', breadcrumb('/a'))) as { id: string };
  await out('draft', 'insert', 'spring');
  await out('rule', 'edit', id, breadcrumb('/b'), '--draft', 'spring');
  await out('rule', 'insert', '{"path":"/1","content":"new"}', '--draft', 'spring');
  const urls = Array.from({ length: 2_500 }, (_, at) => `/${at}`).join('\n');
  const long = await waymark('draft', 'compare', 'spring', '--urls', urls);
  assert.deepEqual(long.err.trim().split('\n'), [
    '1 of 1000 differ.',
    '1 of 2000 differ.',
    '1 of 2500 differ.',
  ]);
  const compared = await out('draft', 'compare', 'spring', '--keys', 'go');
  assert.match(compared, /^key go {2}target, branches\n/);
  assert.match(
    compared,
    / {4}default {2}target\n {6}live {3}302 \/a if \[\]\n {6}draft {2}302 \/b/,
  );
  const listed = await waymark('draft', 'compare', 'spring', '--list', 'visited', '--days', '3');
  assert.match(listed.err, /0 of 0 differ/);
  const missing = await waymark('draft', 'compare', 'spring', '--list', 'sitemap');
  assert.match(missing.err, /sitemap.xml lists no page/);
});

test('waymark rule replace: shown with what is around it, then done in a draft', async (t) => {
  const { waymark, out } = await startClient(t);
  const pages = ['/a', '/b'].map((path) => JSON.stringify({ path, content: 'Pier 7, Kai' }));
  for (const page of pages) await out('rule', 'insert', page);
  await out('draft', 'insert', 'spring');
  const words = ['rule', 'replace', 'Pier (\\d)', 'Quay $1', '--regex', '--draft', 'spring'];
  const report = await out(...words);
  assert.match(report, /^\/a .* 1\n {2}content\n {4}- Pier 7, Kai\n {4}\+ Quay 7, Kai\n\/b /);
  assert.match(report, /This would change 2 pages\./);
  const confirm = /--confirm (\S+)/.exec(report)?.[1] ?? '';
  const other = await waymark(...words, '--path', '/a', '--confirm', confirm);
  assert.match(other.err, /Pages have changed since the report/);
  assert.match(await out(...words, '--confirm', confirm), /^Replaced in 2 pages of the draft/);
  assert.match(await out('rule', 'replace', 'Pier', ''), /This would change 2 pages/);
  assert.match(await out(...words), /^Nothing to replace\.$/m);
});
