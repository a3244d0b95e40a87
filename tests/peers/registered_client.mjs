// Runs a command as a client that is registered at the authorization server of an MCP server: the secret is configured
// together with the issuer, which an operator knows from the registration.
//
//   node registered_client.mjs promptshelf sign-in URL

import { spawnSync } from 'node:child_process';

const [program, ...words] = process.argv.slice(2);
const server = new URL(words.at(-1));
const path = server.pathname.replace(/\/$/, '');
const places = [path, ''].map((place) => new URL(`/.well-known/oauth-protected-resource${place}`, server));
const found = await Promise.all(places.map(async (place) => (await fetch(place)).json().catch(() => undefined)));
const issuer = found.find((document) => document?.authorization_servers)?.authorization_servers[0];
const env = { ...process.env, PROMPTSHELF_CLIENT_ISSUER: issuer ?? '' };
const { status } = spawnSync(program, words, { env, stdio: 'inherit' });
process.exitCode = status ?? 1;
