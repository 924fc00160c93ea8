// Drives `duckflow acp` with the official TypeScript client, and validates every message with its strict schemas.
// node acp_client.mjs SDK-FOLDER FOLDER COMMAND...   (the environment is passed on)
import { spawn } from "node:child_process";
import { Readable, Writable, Transform } from "node:stream";
import { readFileSync } from "node:fs";

const [sdk, folder, ...command] = process.argv.slice(2);
const acp = await import(`${sdk}/dist/v1/stable/acp.js`);
const z = await import(`${sdk}/dist/v1/unstable/schema/zod.gen.js`);
const [agentMethods, clientMethods] = [acp.methods.agent, acp.methods.client];
const results = {
  [agentMethods.initialize]: z.zInitializeResponse, [agentMethods.session.new]: z.zNewSessionResponse,
  [agentMethods.session.load]: z.zLoadSessionResponse, [agentMethods.session.list]: z.zListSessionsResponse,
  [agentMethods.session.delete]: z.zDeleteSessionResponse, [agentMethods.session.prompt]: z.zPromptResponse,
  [agentMethods.session.setMode]: z.zSetSessionModeResponse,
  [agentMethods.session.setConfigOption]: z.zSetSessionConfigOptionResponse,
};
const calls = {
  [clientMethods.session.update]: z.zSessionNotification,
  [clientMethods.session.requestPermission]: z.zRequestPermissionRequest,
  [clientMethods.fs.readTextFile]: z.zReadTextFileRequest, [clientMethods.fs.writeTextFile]: z.zWriteTextFileRequest,
};
const violations = [], counts = {}, asked = {};

// The schemas ignore what they don't know; strict ones would also refuse what a newer protocol allows.
function check(line) {
  const message = JSON.parse(line);
  const method = message.method ?? asked[message.id];
  const schema = message.method ? calls[message.method] : results[method];
  counts[method] = (counts[method] ?? 0) + 1;
  if (message.error) return;
  if (!schema) return void violations.push(`no schema for ${line.slice(0, 200)}`);
  const found = schema.safeParse(message.method ? message.params : message.result);
  if (!found.success) return void violations.push(`${method}: ${found.error.message} in ${line.slice(0, 500)}`);
  // A part that does not fit is replaced by its default where the schema has one: then something is missing.
  const lost = missing(message.method ? message.params : message.result, found.data, "");
  if (lost.length) violations.push(`${method}: dropped ${lost.join(", ")} of ${line.slice(0, 300)}`);
}

function missing(sent, kept, place) {
  if (sent === null || typeof sent !== "object" || place.endsWith("._meta")) return [];
  if (kept === null || typeof kept !== "object") return [place];
  return Object.keys(sent).flatMap((key) =>
    sent[key] === null ? [] : key in kept ? missing(sent[key], kept[key], `${place}.${key}`) : [`${place}.${key}`]);
}

const watched = (see) => {
  let rest = "";
  return new Transform({ transform(piece, _, done) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    lines.filter((line) => line.trim()).forEach(see);
    done(null, piece);
  } });
};
const agent = spawn(command[0], command.slice(1), { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
const sent = watched((line) => { const one = JSON.parse(line); if (one.method && one.id !== undefined) asked[one.id] = one.method; });
sent.pipe(agent.stdin);
const stream = acp.ndJsonStream(Writable.toWeb(sent), Readable.toWeb(agent.stdout.pipe(watched(check))));

const updates = [], permissions = [];
const app = acp.client({ name: "bench" })
  .onNotification(clientMethods.session.update, ({ params }) => void updates.push(params.update))
  .onRequest(clientMethods.session.requestPermission, ({ params }) => {
    permissions.push(params);
    return { outcome: { outcome: "selected", optionId: params.options.find((one) => one.kind === "allow_once").optionId } };
  });
const wrong = [];
const expect = (said, holds) => { if (!holds) wrong.push(said); };
setTimeout(() => {
  console.log(JSON.stringify({ messages: counts, violations, wrong, unfinished: updates.slice(-5) }));
  agent.kill();
  process.exit(1);
}, 90_000).unref();
const text = (words) => [{ type: "text", text: words }];

await app.connectWith(stream, async (duck) => {
  const greeted = await duck.request(agentMethods.initialize, { protocolVersion: 1, clientCapabilities: {} });
  expect("it takes images", greeted.agentCapabilities.promptCapabilities.image);
  expect("it deletes sessions", greeted.agentCapabilities.sessionCapabilities?.delete);
  const { sessionId, configOptions } = await duck.request(agentMethods.session.new, { cwd: folder, mcpServers: [] });
  const model = configOptions.find((one) => one.category === "model");
  const other = model.options.find((one) => one.value !== model.currentValue && one.value.startsWith("openai:")).value;
  const ask = (prompt) => duck.request(agentMethods.session.prompt, { sessionId, prompt });
  const stops = [];
  stops.push((await ask(text("Write hello.py"))).stopReason);
  const changed = await duck.request(agentMethods.session.setConfigOption, { sessionId, configId: model.id, value: other });
  expect("the model is switched", changed.configOptions.find((one) => one.id === model.id).currentValue === other);
  const image = readFileSync(`${folder}/picture.png`).toString("base64");
  stops.push((await ask([...text("What is this?"), { type: "image", mimeType: "image/png", data: image }])).stopReason);
  const slow = ask(text("Sleep for a minute"));
  while (!updates.some((one) => one.status === "in_progress" && JSON.stringify(one).includes("sleep 60"))) await new Promise((go) => setTimeout(go, 50));
  await duck.notify(agentMethods.session.cancel, { sessionId });
  stops.push((await slow).stopReason);
  expect(`stop reasons: ${stops}`, stops.join() === "end_turn,end_turn,cancelled");
  expect("it asked before it wrote", permissions.length >= 1);
  const kinds = new Set(updates.map((one) => one.sessionUpdate));
  for (const kind of ["agent_message_chunk", "tool_call", "tool_call_update", "available_commands_update", "usage_update"])
    expect(`${kind} was sent (of ${[...kinds]})`, kinds.has(kind));
  await duck.request(agentMethods.session.load, { sessionId, cwd: folder, mcpServers: [] });
  expect("what the user said is there again", updates.some((one) => one.sessionUpdate === "user_message_chunk"));
  const listed = await duck.request(agentMethods.session.list, {});
  expect("the session is listed", listed.sessions.some((one) => one.sessionId === sessionId));
  await duck.request(agentMethods.session.delete, { sessionId });
  const left = await duck.request(agentMethods.session.list, {});
  expect("the deleted session is gone", !left.sessions.some((one) => one.sessionId === sessionId));
});
agent.stdin.end();
agent.kill();
console.log(JSON.stringify({ messages: counts, violations, wrong }));
process.exit(violations.length || wrong.length ? 1 : 0);
