// A browser for tests: follows redirects and keeps cookies.
//
//   BROWSER='node browser.mjs' promptshelf sign-in …

const MOST_PAGES = 20;
const cookies = new Map();

let url = new URL(process.argv[2]);
for (let page = 0; page < MOST_PAGES; page += 1) {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const response = await fetch(url, { redirect: 'manual', headers: cookie ? { cookie } : {} });
  for (const line of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
    cookies.set(name, value);
  }
  await response.text();
  const next = response.headers.get('location');
  if (!next) break;
  url = new URL(next, url);
}
