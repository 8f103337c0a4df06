import { ruleFamily } from '../../api/rules/rule-family.ts';
import { recordCommand } from './record-commands.ts';
import { replace } from './replace.ts';

/** `waymark rule list | read | insert | …`; `waymark explain` and `import` are commands. */
export const defineRule = recordCommand(ruleFamily, { replace }, ['explain', 'import']);
