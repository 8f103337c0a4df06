import { ruleFamily } from '../../api/rules/rule-family.ts';
import { recordCommand } from './record-commands.ts';

/** `waymark rule list | read | insert | …`; `waymark explain` and `import` are commands. */
export const defineRule = recordCommand(ruleFamily, {}, ['explain', 'import']);
