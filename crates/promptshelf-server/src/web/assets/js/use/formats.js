// Conversion of messages to the formats of other programs.

import { decodedBytes } from '../text/measure.js';

/**
 * @typedef {import('../mcp/types.js').Message} Message
 * @typedef {import('../mcp/types.js').Block} Block
 * @typedef {import('../mcp/types.js').Contents} Contents
 * @typedef {(block: { kind: 'image' | 'audio' | 'document', mimeType: string, data: string, name: string }) => object | null} Media
 */

const PICTURES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif'];

/** Plain text, for pasting into a chat. @param {Message[]} messages */
export function asText(messages) {
  const roles = new Set(messages.map((message) => message.role));
  /** @type {string[]} */
  const parts = [];
  let speaker = '';
  for (const { role, content } of messages) {
    if (roles.size > 1 && role !== speaker) parts.push(`[${role}]`);
    speaker = role;
    parts.push(words(content).trimEnd());
  }
  return parts.join('\n\n');
}

/** A content block as text. @param {Block} block */
export function words(block) {
  if (block.type === 'text') return block.text ?? '';
  if (block.type === 'resource' && block.resource) return embedded(block.resource);
  if (block.type === 'resource_link') return `${block.title ?? block.name}: ${block.uri}`;
  return `[${block.type}, ${block.mimeType}, ${decodedBytes(block.data ?? '')} bytes]`;
}

/**
 * The number of images, sounds and other files that a format has no place for: only their names are in it.
 *
 * @param {Message[]} messages
 * @param {(messages: Message[]) => unknown} make
 */
export function leftOut(messages, make) {
  const made = JSON.stringify(make(messages));
  return messages.filter(({ content }) => {
    const data = content.data ?? content.resource?.blob;
    return data !== undefined && !made.includes(data);
  }).length;
}

/** @param {Contents} contents */
function embedded({ uri, mimeType, text, blob }) {
  if (text === undefined) return `[${uri}, ${mimeType}, ${decodedBytes(blob ?? '')} bytes]`;
  // One backtick longer than any fence in the text, so that the text cannot close it.
  // Not `Math.max(...runs)`: a call has a bounded number of arguments.
  let longest = 2;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  const fence = '`'.repeat(longest + 1);
  return `${uri} (${mimeType ?? 'text/plain'}):\n\n${fence}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`;
}

/** `messages` for OpenAI's Chat Completions. @param {Message[]} messages */
export function openai(messages) {
  return turns(messages, ({ kind, mimeType, data, name }) => {
    const url = `data:${mimeType};base64,${data}`;
    if (kind === 'image' && PICTURES.includes(mimeType)) return { type: 'image_url', image_url: { url } };
    if (kind === 'audio' && /^audio\/(x-wav|wav|wave|vnd\.wave)$/.test(mimeType))
      return { type: 'input_audio', input_audio: { data, format: 'wav' } };
    if (kind === 'audio' && /^audio\/(mpeg|mp3)$/.test(mimeType))
      return { type: 'input_audio', input_audio: { data, format: 'mp3' } };
    if (mimeType === 'application/pdf') return { type: 'file', file: { filename: name, file_data: url } };
    return null;
  });
}

/** `messages` for Anthropic's Messages. @param {Message[]} messages */
export function anthropic(messages) {
  return turns(messages, ({ kind, mimeType, data, name }) => {
    const source = { type: 'base64', media_type: mimeType, data };
    if (kind === 'image' && PICTURES.includes(mimeType)) return { type: 'image', source };
    if (mimeType === 'application/pdf') return { type: 'document', source, title: name };
    return null;
  });
}

/**
 * Merges consecutive messages of one role: MCP has one block a message, these APIs allow several.
 *
 * @param {Message[]} messages
 * @param {Media} media
 */
function turns(messages, media) {
  /** @type {{ role: string, parts: any[] }[]} */
  const made = [];
  for (const { role, content } of messages) {
    const part = (role === 'user' && asMedia(content, media)) || { type: 'text', text: words(content) };
    const last = made[made.length - 1];
    if (last?.role === role) last.parts.push(part);
    else made.push({ role, parts: [part] });
  }
  return made.map(({ role, parts }) => {
    const isPlain = parts.length === 1 && parts[0].type === 'text';
    return { role, content: isPlain ? parts[0].text : parts };
  });
}

/** @param {Block} block @param {Media} media */
function asMedia(block, media) {
  const data = block.data ?? block.resource?.blob;
  if (data === undefined) return null;
  const mimeType = (block.mimeType ?? block.resource?.mimeType ?? '').split(';')[0].trim();
  const kind = mimeType.startsWith('image/') ? 'image' : mimeType.startsWith('audio/') ? 'audio' : 'document';
  return media({ kind, mimeType, data, name: block.resource?.uri.split('/').pop() ?? '' });
}
