// Judges prompts with a model behind an OpenAI-compatible endpoint: openai.mjs RUBRIC.txt
//
// The model answers each case, and then grades its answer by the rubric with a number from 0 to 1. The environment has
// the endpoint and the model: OPENAI_BASE_URL (such as https://api.openai.com/v1), OPENAI_API_KEY, OPENAI_MODEL, and
// OPENAI_JUDGE for another model that grades.

import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** Returns messages in the form of Chat Completions. Media that is not text is named only. @param {any[]} messages */
export function messagesOf(messages) {
  return messages.map(({ role, content }) => ({ role, content: textOf(content) }));
}

/** @param {any} content */
function textOf(content) {
  if (content.type === 'text') return content.text;
  if (content.type === 'resource') return content.resource.text ?? `[${content.resource.uri}]`;
  if (content.type === 'resource_link') return `${content.title ?? content.name}: ${content.uri}`;
  return `[${content.type}, ${content.mimeType}]`;
}

/** Returns the number of a grade such as `0.8`. @param {string} answer */
export function grade(answer) {
  const found = /(?<![\d.-])(?:0(?:\.\d+)?|1(?:\.0+)?)(?!\.?\d)/.exec(answer);
  if (!found) throw new Error(`expected a grade from 0 to 1, got ${JSON.stringify(answer.slice(0, 200))}`);
  return Number(found[0]);
}

/** Asks a model. @param {string} model @param {any[]} messages @returns {Promise<string>} */
async function complete(model, messages) {
  const base = (process.env.OPENAI_BASE_URL ?? 'https://api.openai.com/v1').replace(/\/$/, '');
  const response = await fetch(`${base}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${process.env.OPENAI_API_KEY ?? ''}` },
    body: JSON.stringify({ model, messages }),
  });
  if (!response.ok) throw new Error(`the endpoint answered with status ${response.status}: ${await response.text()}`);
  const answer = (await response.json()).choices?.[0]?.message?.content;
  if (typeof answer !== 'string') throw new Error('the endpoint answered without a message');
  return answer;
}

async function main() {
  const rubric = await readFile(process.argv[2] ?? 'rubric.txt', 'utf8');
  const model = process.env.OPENAI_MODEL;
  if (!model) throw new Error('OPENAI_MODEL is not set');
  const judge = process.env.OPENAI_JUDGE ?? model;
  const { cases } = JSON.parse(await text(process.stdin));
  const judged = [];
  for (const { name, messages } of cases) {
    const answer = await complete(model, messagesOf(messages));
    const question = `Grade the answer by the rubric. Reply with one number from 0 to 1.\n\nRubric:\n${rubric}\n\nAnswer:\n${answer}`;
    const reason = await complete(judge, [{ role: 'user', content: question }]);
    judged.push({ name, score: grade(reason), reason: answer.slice(0, 1000) });
  }
  const score = judged.reduce((sum, { score }) => sum + score, 0) / judged.length;
  console.log(
    JSON.stringify({ scores: { score }, cases: judged, model: judge === model ? model : `${model}, ${judge}` }),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
