import js from '@eslint/js';
import globals from 'globals';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/', 'conf/site/', '**/data/'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      // Numbers in messages are what a reader of the message wants.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true }],
      'no-console': 'error',
      'max-lines-per-function': ['error', { max: 70, skipComments: true, skipBlankLines: true }],
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      // node:test's `test` and `suite` return promises that the runner itself awaits.
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', package: 'node:test', name: ['test', 'suite', 'describe', 'it'] },
          ],
        },
      ],
      'max-lines-per-function': 'off',
      // A test looks into the JSON of an answer as it likes: what is not there fails the test.
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
  { files: ['bench/**/*.ts'], rules: { 'no-console': 'off' } },
  { files: ['public/**/*.js'], languageOptions: { globals: globals.browser } },
  { files: ['bin/*.js', '*.js'], languageOptions: { globals: globals.node } },
);
