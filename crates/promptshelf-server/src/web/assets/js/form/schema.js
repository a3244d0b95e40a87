// Forms for elicitation requests, built from their JSON Schema.

/**
 * @typedef {import('../mcp/types.js').Schema} Schema
 * @typedef {import('../mcp/types.js').Question} Question
 * @typedef {import('./field.js').FieldKind} FieldKind
 */

/** @param {Question} question @returns {FieldKind[]} */
export function kinds(question) {
  const { properties = {}, required = [] } = question.requestedSchema ?? {};
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    title: schema.title ?? name,
    description: schema.description,
    required: required.includes(name),
    type: typeOf(schema),
    format: schema.format,
    default:
      schema.default === undefined
        ? null
        : Array.isArray(schema.default)
          ? schema.default.join('\n')
          : String(schema.default),
    choices: choices(schema.type === 'array' ? (schema.items ?? {}) : schema),
    minimum: schema.minimum,
    maximum: schema.maximum,
    minLength: schema.minLength,
    maxLength: schema.maxLength,
  }));
}

/** @param {Schema} schema */
function typeOf(schema) {
  if (schema.type === 'array') return 'list';
  if (schema.type === 'string' && schema.format === 'date') return 'date';
  if (schema.type === 'string' && (schema.maxLength ?? 0) > 300) return 'text';
  return schema.type ?? 'string';
}

/** @param {Schema} schema */
function choices(schema) {
  const titled = schema.oneOf ?? schema.anyOf;
  if (titled) return titled.map((choice) => ({ value: choice.const, title: choice.title ?? null }));
  return (schema.enum ?? []).map((value, index) => ({ value, title: schema.enumNames?.[index] ?? null }));
}

/**
 * Converts a field's text to the type in its schema.
 *
 * @param {Schema} schema
 * @param {string} text
 */
export function content(schema, text) {
  if (schema.type === 'boolean') return text === 'true';
  // An invalid number is sent unchanged: the server explains the problem.
  if (schema.type === 'integer' || schema.type === 'number') return Number.isFinite(Number(text)) ? Number(text) : text;
  if (schema.type === 'array')
    return text
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean);
  return text;
}
