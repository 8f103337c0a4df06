import { may, mayDesign } from '../api/api.ts';
import { linkTo } from '../route.ts';
import { texts } from '../texts.ts';

/**
 * Why a person cannot change anything on a screen, and what to do; nothing if they can. A key of the
 * scope `draft` makes a draft, and comes back to the screen.
 */
export function ReadOnly() {
  if (mayDesign()) return null;
  if (!may('draft')) return <p class="note">{texts.editor.readOnly}</p>;
  return (
    <p class="note">
      {texts.drafts.needed}{' '}
      <a href={linkTo('/drafts/new', { then: location.hash.slice(1) })}>
        {texts.drafts.neededMake}
      </a>
    </p>
  );
}
