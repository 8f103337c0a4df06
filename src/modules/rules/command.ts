import { ruleFamily } from './operations/rule-family.ts';
import { recordCommand } from '../../cli/remote/record-commands.ts';
import { replace } from './replace/command.ts';

/** `waymark rule list | read | insert | …`; `waymark explain` and `import` are commands. */
export const defineRule = recordCommand(ruleFamily, { replace }, ['explain', 'import']);
