// What tsc does not see: rules about what the code does, and about what this page may not do.
import js from '@eslint/js';
import globals from 'globals';

const MARKUP = 'Text is text: nothing here makes markup of it.';

export default [
  js.configs.recommended,
  {
    files: ['**/*.js'],
    languageOptions: { ecmaVersion: 2022, sourceType: 'module', globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      'array-callback-return': 'error',
      'consistent-return': 'error',
      'default-case-last': 'error',
      eqeqeq: 'error',
      'no-alert': 'error',
      'no-console': 'error',
      'no-constructor-return': 'error',
      'no-duplicate-imports': 'error',
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-new-func': 'error',
      'no-promise-executor-return': 'off',
      'no-script-url': 'error',
      'no-self-compare': 'error',
      'no-shadow': 'error',
      'no-throw-literal': 'error',
      'no-unreachable-loop': 'error',
      'no-unused-vars': ['error', { args: 'all', argsIgnorePattern: '^_', caughtErrors: 'all' }],
      'no-use-before-define': ['error', { functions: false, variables: false }],
      'no-useless-assignment': 'error',
      'no-var': 'error',
      'object-shorthand': 'error',
      'prefer-const': ['error', { destructuring: 'all' }],
      'require-atomic-updates': 'off',
      'no-restricted-properties': ['error',
        ...['innerHTML', 'outerHTML', 'insertAdjacentHTML', 'write', 'srcdoc'].map((property) => ({ property, message: MARKUP }))],
      'no-restricted-syntax': ['error',
        { selector: "Literal[value='dangerouslySetInnerHTML']", message: MARKUP },
        { selector: "TemplateElement[value.raw=/dangerouslySetInnerHTML|<script|\\bon[a-z]+=[\"']/]", message: MARKUP }],
    },
  },
];
