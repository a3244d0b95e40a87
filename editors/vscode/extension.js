// @ts-check
// The client of `promptshelf lsp`, and what only an editor can show: a preview, tests at a click, a new prompt.

const path = require('node:path');
const vscode = require('vscode');
const { LanguageClient, State } = require('vscode-languageclient/node');

/** Files that the language server understands. */
const SELECTOR = [
  { scheme: 'file', language: 'markdown' },
  { scheme: 'file', pattern: '**/promptshelf.toml' },
  { scheme: 'file', pattern: '**/*.prompt.{yml,yaml}' },
  { scheme: 'file', pattern: '**/.gemini/commands/**/*.toml' },
];

/** @type {LanguageClient | undefined} */
let client;

/** @param {vscode.ExtensionContext} context */
async function activate(context) {
  const { registerCommand } = vscode.commands;
  const preview = new Preview();
  context.subscriptions.push(
    preview,
    registerCommand('promptshelf.preview', () => preview.open()),
    registerCommand('promptshelf.newPrompt', newPrompt),
    registerCommand('promptshelf.runTest', runTest),
    registerCommand('promptshelf.restart', start),
    vscode.languages.registerCodeLensProvider(SELECTOR, { provideCodeLenses }),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration('promptshelf') && start()),
  );
  await start();
}

async function deactivate() {
  await client?.stop();
}

function program() {
  return vscode.workspace.getConfiguration('promptshelf').get('path', 'promptshelf');
}

/** The folder of prompts, if the settings name one. */
function library() {
  const named = vscode.workspace.getConfiguration('promptshelf').get('library', '');
  const root = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  return named && root ? path.resolve(root, named) : undefined;
}

async function start() {
  await client?.stop();
  const folder = library();
  const server = { command: program(), args: folder ? ['lsp', folder] : ['lsp'] };
  client = new LanguageClient('promptshelf', 'promptshelf', server, {
    documentSelector: SELECTOR,
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher('**/*') },
  });
  client.onDidChangeState(({ newState }) => {
    vscode.commands.executeCommand('setContext', 'promptshelf.isRunning', newState === State.Running);
  });
  try {
    await client.start();
  } catch (error) {
    const shown = `${server.command} could not be started: ${error instanceof Error ? error.message : error}`;
    const help = 'Install it with `npm install --global promptshelf`, or name it in the setting promptshelf.path.';
    const settings = 'Open Settings';
    if ((await vscode.window.showErrorMessage(`${shown}. ${help}`, settings)) === settings) {
      await vscode.commands.executeCommand('workbench.action.openSettings', 'promptshelf.path');
    }
  }
}

/** The text of a prompt with sample values, beside its file. */
class Preview {
  /** @type {vscode.WebviewPanel | undefined} */
  panel;
  /** @type {NodeJS.Timeout | undefined} */
  waiting;

  constructor() {
    this.listeners = [
      vscode.window.onDidChangeActiveTextEditor(() => this.soon()),
      vscode.workspace.onDidChangeTextDocument(() => this.soon()),
    ];
  }

  open() {
    this.panel ??= vscode.window.createWebviewPanel(
      'promptshelf.preview',
      'Prompt',
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: false, localResourceRoots: [] },
    );
    this.panel.onDidDispose(() => {
      this.panel = undefined;
    });
    return this.show();
  }

  soon() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.show(), 150);
  }

  async show() {
    const document = vscode.window.activeTextEditor?.document;
    if (!this.panel || !client || !document || !vscode.languages.match(SELECTOR, document)) {
      return;
    }
    const textDocument = { uri: document.uri.toString() };
    /** @type {{ name: string, text: string } | null} */
    const rendered = await client.sendRequest('promptshelf/preview', { textDocument }).catch(() => null);
    if (!this.panel) {
      return;
    }
    this.panel.title = rendered ? rendered.name : path.basename(document.fileName);
    const text = rendered ? `<pre>${escaped(rendered.text)}</pre>` : '<p>This file has no valid prompt. See its problems.</p>';
    this.panel.webview.html = `<!doctype html><html lang="en"><head><meta charset="utf-8">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
      <style>pre { white-space: pre-wrap; font-family: var(--vscode-editor-font-family); }</style></head><body>${text}</body></html>`;
  }

  dispose() {
    clearTimeout(this.waiting);
    this.panel?.dispose();
    for (const listener of this.listeners) {
      listener.dispose();
    }
  }
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** @param {vscode.TextDocument} document */
async function provideCodeLenses(document) {
  /** @type {(vscode.DocumentSymbol | vscode.SymbolInformation)[] | undefined} */
  const symbols = await vscode.commands.executeCommand('vscode.executeDocumentSymbolProvider', document.uri);
  const parts = (symbols ?? []).flatMap((symbol) => ('children' in symbol ? symbol.children : []));
  return parts
    .filter((part) => part.kind === vscode.SymbolKind.Event)
    .map((test) => {
      const command = { title: 'Run test', command: 'promptshelf.runTest', arguments: [document.uri, test.name] };
      return new vscode.CodeLens(test.selectionRange, command);
    });
}

/**
 * @param {vscode.Uri} [uri]
 * @param {string} [test]
 */
async function runTest(uri, test) {
  const document = uri ? await vscode.workspace.openTextDocument(uri) : vscode.window.activeTextEditor?.document;
  if (!document) {
    return;
  }
  await document.save();
  const filter = test && !/^test \d+$/.test(test) ? ['--filter', test] : [];
  await run('test', ['test', document.fileName, ...filter]);
}

/** @param {vscode.Uri} [folder] */
async function newPrompt(folder) {
  const name = await vscode.window.showInputBox({
    prompt: 'The name of the prompt',
    placeHolder: 'write-summary',
    validateInput: (text) => (/^[\w.-]+$/.test(text) ? undefined : 'Use letters, digits, -, _ and .'),
  });
  const root = folder?.fsPath ?? library() ?? vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  if (!name || !root) {
    return;
  }
  const file = vscode.Uri.file(path.join(root, `${name}.md`));
  const created = await run('new', ['new', name, '--to', root]);
  if (created === 0) {
    await vscode.window.showTextDocument(file);
  }
}

/**
 * Runs the program in the terminal panel, without a shell, and returns its exit code.
 *
 * @param {string} name
 * @param {string[]} words
 * @returns {Promise<number | undefined>}
 */
async function run(name, words) {
  const task = new vscode.Task(
    { type: 'promptshelf', command: name },
    vscode.TaskScope.Workspace,
    name,
    'promptshelf',
    new vscode.ProcessExecution(program(), words),
  );
  const ended = new Promise((resolve) => {
    const listener = vscode.tasks.onDidEndTaskProcess((event) => {
      if (event.execution.task.name === name && event.execution.task.source === 'promptshelf') {
        listener.dispose();
        resolve(event.exitCode);
      }
    });
  });
  await vscode.tasks.executeTask(task);
  return ended;
}

module.exports = { activate, deactivate };
