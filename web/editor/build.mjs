// Bundles CodeMirror for the page: `npm ci && npm run build`. The result is committed, so that building and installing
// the program needs no Node. `--check` compares the committed file instead, which needs no network after `npm ci`.

import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';

const HERE = import.meta.dirname;
const OUTPUT = join(HERE, '../../crates/promptshelf-server/src/web/assets/vendor/codemirror.js');

const { outputFiles, metafile } = await build({
  absWorkingDir: HERE,
  entryPoints: ['entry.js'],
  bundle: true,
  format: 'esm',
  legalComments: 'none',
  metafile: true,
  minify: true,
  target: 'es2022',
  write: false,
});

/** The packages in the bundle, with their versions, and each licence once with its holders. */
const folders = [
  ...new Set(Object.keys(metafile.inputs).flatMap((path) => path.match(/^node_modules\/(?:@[^/]+\/)?[^/]+/) ?? [])),
].sort();
const texts = new Map();
for (const folder of folders) {
  const { name, version } = JSON.parse(readFileSync(join(HERE, folder, 'package.json'), 'utf8'));
  const text = readFileSync(join(HERE, folder, 'LICENSE'), 'utf8')
    .replaceAll('*/', '* /')
    .trim();
  texts.set(text, [...(texts.get(text) ?? []), `${name} ${version}`]);
}
const notice = [...texts].map(([text, names]) => `${names.join(', ')}:\n\n${text}`).join('\n\n');
const bundle = `/*! Made by web/editor/build.mjs from these packages:\n\n${notice}\n*/\n${outputFiles[0].text}`;

if (process.argv.includes('--check')) {
  if (readFileSync(OUTPUT, 'utf8') !== bundle) {
    console.error(
      `${OUTPUT} is not the output of this script: run npm run build in ${dirname(OUTPUT)}'s source, web/editor`,
    );
    process.exit(1);
  }
} else {
  writeFileSync(OUTPUT, bundle);
}
console.log(`${bundle.length} bytes from ${folders.length} packages`);
