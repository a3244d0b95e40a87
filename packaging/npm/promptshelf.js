#!/usr/bin/env node
// Starts the program for this platform, which npm installs as an optional dependency.
'use strict';
const { spawn } = require('node:child_process');

const platform = `${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`@promptshelf/${platform}/bin/promptshelf${process.platform === 'win32' ? '.exe' : ''}`);
} catch {
  console.error(
    `error: the npm package promptshelf found no program for ${platform}\n` +
      'help: install it without `--omit=optional` and with the network on; platforms with a program: @PLATFORMS@',
  );
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
for (const signal of signals) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`error: ${program} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  for (const name of signals) process.removeAllListeners(name);
  if (signal) process.kill(process.pid, signal);
  else process.exit(code);
});
