// Loaded before the test files: processes share their compiled code.
import { enableCompileCache } from 'node:module';

enableCompileCache();
