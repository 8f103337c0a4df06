// Loaded before each test file: what one process has compiled, the next one need not.
import { enableCompileCache } from 'node:module';

enableCompileCache();
