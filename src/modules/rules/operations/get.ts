import { defineOperation } from '../../../core/operations/operation.ts';
import {
  type PageParts,
  contentPlace,
  placeInput,
  siteFor,
  visibleRule,
  winningRule,
} from './page-lookup.ts';
import { publicRule } from './rule-schema.ts';
import {
  preparedContent,
  preparedEnginedata,
  preparedServerFields,
  renderAnswer,
  renderRule,
  renderView,
} from './rule-view.ts';

/** userinterface.get: the public fields of the rule that answers at an origin and path. */
export const getRule = defineOperation({
  name: 'svc1.userinterface.get',
  scope: 'render',
  effect: 'reads',
  inDrafts: true,
  summary: 'The page rule that answers at an origin and path, as a running page may see it.',
  input: placeInput,
  output: publicRule,
  etag: true,
  failures: ['not_found'],
  run:
    ({ view, ...parts }: PageParts) =>
    async (v, call) => {
      const where = contentPlace(v, view, call.caller);
      const find = () => winningRule(siteFor(parts, v, call), where, call);
      const found = await visibleRule(parts, where, { call, find });
      const { rule } = found.stored;
      const rendered = await renderRule(found, { visitor: call.visitor, query: where.query });
      const { content, enginedata, ...shown } = renderView(found);
      const data = {
        ...shown,
        ...(content !== undefined && { content: preparedContent(rule) }),
        ...(enginedata !== undefined && { enginedata: preparedEnginedata(rendered.enginedata) }),
        ...preparedServerFields(rule, view, call.origin),
      };
      const isForAll = call.caller.keyId === undefined;
      return renderAnswer(data, found, { isForAll, dependencies: rendered.dependencies });
    },
});
