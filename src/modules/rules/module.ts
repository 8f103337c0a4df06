import { defineModule } from '../../core/module.ts';
import { recordOperations } from '../../core/operations/records/write.ts';
import { explainRequest } from './operations/explain.ts';
import { followPlace } from './operations/follow.ts';
import { getContent } from './operations/get-content.ts';
import { getRule } from './operations/get.ts';
import { ruleFamily } from './operations/rule-family.ts';
import { subscribeToRules } from './operations/subscribe.ts';
import { listTimes } from './operations/times.ts';
import { ruleTree } from './operations/tree.ts';
import { replaceInRules } from './replace/replace.ts';

/** Page rules, and which of them answers. */
export const rules = defineModule({
  name: 'rules',
  needs: ['compression', 'files', 'headers', 'visitors'],
  operations: [
    ...recordOperations(ruleFamily),
    subscribeToRules,
    explainRequest,
    getRule,
    getContent,
    followPlace,
    ruleTree,
    listTimes,
    replaceInRules,
  ],
  commands: [
    {
      name: 'rule',
      summary: 'read and write page rules',
      load: async () => (await import('./command.ts')).defineRule,
    },
  ],
});
