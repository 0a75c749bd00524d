// Asks model.rlp by the official clients and prints what they make of the answers.
import { createRequire } from 'node:module';
const require = createRequire(process.env.CLIENTS + '/');
const OpenAI = require('openai').default ?? require('openai');
const Anthropic = require('@anthropic-ai/sdk').default ?? require('@anthropic-ai/sdk');
const base = process.env.BASE;
const openai = new OpenAI({ apiKey: 'any', baseURL: base + '/v1', maxRetries: 2 });
const anthropic = new Anthropic({ apiKey: 'any', baseURL: base, maxRetries: 2 });
const look = { type: 'object', properties: { at: { type: 'integer' } }, required: ['at'] };
const said = 'the stones are cold and grey';

async function chat(model) {
  const tools = [{ type: 'function', function: { name: 'look', parameters: look } }];
  const messages = [{ role: 'system', content: 'be brief' }, { role: 'user', content: [{ type: 'text', text: said }] }];
  const whole = await openai.chat.completions.create({ model, messages, tools });
  const m = whole.choices[0].message;
  let again = null;
  if (m.tool_calls) { // what came goes back as it came
    const results = m.tool_calls.map((c) => ({ role: 'tool', tool_call_id: c.id, content: 'a stone' }));
    const next = await openai.chat.completions.create({ model: model.split(':')[0] + ':some', messages: [...messages, m, ...results], tools });
    again = next.choices[0].message.content;
  }
  const stream = await openai.chat.completions.create({ model, messages, tools, stream: true, stream_options: { include_usage: true } });
  let text = '', calls = [], reason = null, usage = null, chunks = 0;
  for await (const chunk of stream) {
    chunks++;
    usage = chunk.usage ?? usage;
    for (const c of chunk.choices) {
      text += c.delta.content ?? '';
      reason = c.finish_reason ?? reason;
      for (const call of c.delta.tool_calls ?? []) {
        calls[call.index] ??= { id: call.id, name: call.function.name, arguments: '' };
        calls[call.index].arguments += call.function.arguments ?? '';
      }
    }
  }
  const final = await openai.chat.completions.stream({ model, messages, tools }).finalMessage();
  return {
    whole: m.content, calls: (m.tool_calls ?? []).map((c) => ({ id: c.id, name: c.function.name, arguments: c.function.arguments })),
    reason: whole.choices[0].finish_reason, tokens: whole.usage.total_tokens, again,
    stream: { text, calls, reason, tokens: usage.total_tokens, chunks }, final: final.content ?? '',
  };
}

async function responses(model) {
  const tools = [{ type: 'function', name: 'look', parameters: look, strict: false }, { type: 'web_search' }];
  const input = [{ role: 'user', content: [{ type: 'input_text', text: said }] }];
  const whole = await openai.responses.create({ model, instructions: 'be brief', input, tools, store: false, reasoning: { effort: 'low' } });
  const calls = whole.output.filter((o) => o.type === 'function_call');
  let again = null;
  if (calls.length) {
    const outputs = calls.map((c) => ({ type: 'function_call_output', call_id: c.call_id, output: 'a stone' }));
    again = (await openai.responses.create({ model: model.split(':')[0] + ':some', input: [...input, ...whole.output, ...outputs], tools })).output_text;
  }
  const kinds = [];
  let text = '';
  const stream = openai.responses.stream({ model, input, tools });
  for await (const e of stream) {
    if (kinds.at(-1) !== e.type) kinds.push(e.type);
    if (e.type === 'response.output_text.delta') text += e.delta;
  }
  const final = await stream.finalResponse();
  return {
    whole: whole.output_text, calls: calls.map((c) => ({ id: c.call_id, name: c.name, arguments: c.arguments })),
    reason: whole.status, tokens: whole.usage.total_tokens, again, kinds,
    stream: {
      text, reason: final.status, tokens: final.usage.total_tokens,
      calls: final.output.filter((o) => o.type === 'function_call').map((c) => ({ id: c.call_id, name: c.name, arguments: c.arguments })),
    }, final: final.output_text,
  };
}

async function messages(model) {
  const tools = [{ name: 'look', input_schema: look }];
  const list = [{ role: 'user', content: said }];
  const body = { model, max_tokens: 100, system: [{ type: 'text', text: 'be brief', cache_control: { type: 'ephemeral' } }], messages: list, tools };
  const whole = await anthropic.messages.create(body);
  const textOf = (m) => m.content.filter((b) => b.type === 'text').map((b) => b.text).join('');
  const callsOf = (m) => m.content.filter((b) => b.type === 'tool_use').map((b) => ({ id: b.id, name: b.name, arguments: JSON.stringify(b.input) }));
  let again = null;
  if (callsOf(whole).length) {
    const results = callsOf(whole).map((c) => ({ type: 'tool_result', tool_use_id: c.id, content: [{ type: 'text', text: 'a stone' }] }));
    const next = await anthropic.messages.create({ ...body, model: model.split(':')[0] + ':some', messages: [...list, { role: 'assistant', content: whole.content }, { role: 'user', content: results }] });
    again = textOf(next);
  }
  let text = '';
  const stream = anthropic.messages.stream(body).on('text', (t) => { text += t; });
  const final = await stream.finalMessage();
  return {
    whole: textOf(whole), calls: callsOf(whole), reason: whole.stop_reason, tokens: whole.usage.input_tokens + whole.usage.output_tokens, again,
    stream: { text, calls: callsOf(final), reason: final.stop_reason, tokens: final.usage.input_tokens + final.usage.output_tokens }, final: textOf(final),
  };
}

async function embeddings(model) {
  const plain = await openai.embeddings.create({ model, input: 'one', encoding_format: 'float' });
  const many = await openai.embeddings.create({ model, input: ['one', 'three'] }); // the client asks for base64
  return { one: plain.data[0].embedding, many: many.data.map((d) => d.embedding), tokens: many.usage.total_tokens };
}

// failed is how a client tells of an error, and how often it asked.
async function failed(ask) {
  try {
    await ask();
    return { status: 200 };
  } catch (e) {
    return { kind: e.constructor.name, status: e.status ?? null, message: e.message, retry: e.headers?.get?.('x-should-retry') ?? null };
  }
}

const out = { chat: {}, responses: {}, messages: {}, errors: {} };
for (const provider of ['openai', 'anthropic']) {
  for (const name of ['some', 'odd', 'mixed', 'limited']) {
    const model = provider + ':' + name;
    out.chat[model] = await chat(model);
    out.responses[model] = await responses(model);
    out.messages[model] = await messages(model);
  }
  for (const name of ['busy', 'later', 'denied', 'broken', 'locked']) {
    const model = provider + ':' + name;
    const list = [{ role: 'user', content: said }];
    out.errors['chat ' + model] = await failed(() => openai.chat.completions.create({ model, messages: list }));
    out.errors['responses ' + model] = await failed(() => openai.responses.create({ model, input: said }));
    out.errors['messages ' + model] = await failed(() => anthropic.messages.create({ model, max_tokens: 9, messages: list }));
    out.errors['stream ' + model] = await failed(async () => { for await (const _ of await openai.chat.completions.create({ model, messages: list, stream: true })); });
    out.errors['events ' + model] = await failed(() => anthropic.messages.stream({ model, max_tokens: 9, messages: list }).finalMessage());
  }
}
out.embeddings = await embeddings('openai:vectors');
console.log(JSON.stringify(out));
