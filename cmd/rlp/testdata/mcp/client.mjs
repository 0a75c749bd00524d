// A stock client: it asks a server, given as a command, what its first argument says,
// and prints each answer on a line.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, steps, command, ...args] = process.argv.slice(2);
const sdk = createRequire(modules + "/x.js");
const load = name => import(pathToFileURL(sdk.resolve("@modelcontextprotocol/sdk/" + name)));
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { LoggingMessageNotificationSchema } = await load("types.js");

const client = new Client({ name: "stock", version: "1" }, { capabilities: {} });
client.setNotificationHandler(LoggingMessageNotificationSchema, n => console.log("notice " + JSON.stringify(n.params)));
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));
for (const [method, params] of JSON.parse(steps)) {
  let answer;
  try { answer = await client[method](params); } catch (e) { answer = { error: e.message }; }
  console.log(method + " " + JSON.stringify(answer));
}
await client.close();
