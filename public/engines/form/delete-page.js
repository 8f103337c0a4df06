/* The page that shows a record and deletes it on confirmation. */

import { link, tag } from './dom.js';
import { newKey } from './host.js';
import { linksOf } from './links.js';
import { button, failureText, message, showEnd, showProblem, showStatus } from './messages.js';
import { describeRecord } from './record.js';

/** Shows a record and a button to delete it; `notice` stands above it. */
export function showDelete(form, record, notice) {
  const { answer, say, records, members, body, meta, name } = form;
  const top = tag('div', { className: 'waymark-top' });
  // One vk for this record as it is shown: a second attempt deletes nothing twice.
  const key = newKey();
  const remove = button(say('delete'), async () => {
    if (remove.getAttribute('aria-disabled') === 'true') return;
    remove.setAttribute('aria-disabled', 'true');
    showStatus(top, say('sending'));
    try {
      const data = await records.remove(record, key, name);
      showEnd(body, say('deleted'), linksOf(answer, { ...name, ...record, ...data }));
    } catch (failure) {
      if (failure.code === 'precondition_failed') return await showChanged(form, failure);
      showProblem(top, message(failureText(failure, say), failure, say));
    } finally {
      remove.removeAttribute('aria-disabled');
    }
    return undefined;
  });
  remove.className = 'waymark-send waymark-delete';
  body.replaceChildren(
    top,
    tag('p', {}, say('sure')),
    describeRecord(members, record, { say, lang: answer.lang ?? undefined, root: meta }),
    tag(
      'p',
      { className: 'waymark-actions' },
      remove,
      link(answer.enginedata.cancel, say('cancel')) ?? '',
    ),
  );
  if (notice !== undefined) showProblem(top, message(notice));
}

/** Shows the record as it is now, for a new decision. */
async function showChanged(form, failure) {
  const { records, say, body, name } = form;
  try {
    showDelete(form, await records.read(name), say('changed'));
  } catch (later) {
    body.replaceChildren(message(failureText(later, say), failure, say));
  }
}
