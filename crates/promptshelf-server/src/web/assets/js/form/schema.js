// Forms for elicitation requests, built from their JSON Schema.

/**
 * @typedef {import('../mcp/types.js').Schema} Schema
 * @typedef {import('../mcp/types.js').Question} Question
 * @typedef {import('./field.js').FieldKind} FieldKind
 */

/**
 * @param {Question} question
 * @param {Record<string, string>} [types] those of the prompt's arguments: a schema has no long text and no free list
 * @returns {FieldKind[]}
 */
export function kinds(question, types = {}) {
  const { properties = {}, required = [] } = question.requestedSchema ?? {};
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    title: schema.title ?? name,
    description: schema.description,
    required: required.includes(name),
    type: typeOf(schema, types[name]),
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

/** @param {Schema} schema @param {string} [type] of the argument */
function typeOf(schema, type) {
  if (schema.type === 'array') return 'list';
  if (schema.type === 'string' && type && ['list', 'text', 'json'].includes(type)) return type;
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
