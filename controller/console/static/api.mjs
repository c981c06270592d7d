// Calls of the REST API. Who asks is known by the session's cookie; what changes something shows the session's token.
const API = "/api/v1/cron";
const apiPath = (path) => (path.startsWith("/queues") ? "/api/v1" : API) + path;
let known = null; // the session that this browser had when it was asked last
let looking = null;
let changed = () => {};

// What an answer of status 400 and above says (RFC 9457). `status` 0: there was no answer.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || "no reason was given");
    this.status = status;
    this.code = body.code || "";
    this.reason = body.reason || "";
    this.violations = body.violations || [];
  }
  get away() {
    return this.status === 0 || this.status >= 500;
  }
}

// What somebody may is said by the API: this page knows of no role what it gives.
export class Session {
  constructor(said) {
    this.name = said.name ? `${said.kind}:${said.name}` : said.kind;
    this.csrf = said.csrf_token;
    this.where = said.may;
  }
  // `namespace` "*" asks for all of them at once; undefined: in any.
  may(permission, namespace) {
    const where = this.where[permission] ?? [];
    return namespace === undefined ? where.length > 0 : where.includes("*") || where.includes(namespace);
  }
  // What a form begins with: a namespace in which it may that.
  home(permission) {
    return this.may(permission, "default") ? "default" : (this.where[permission] ?? [""])[0];
  }
}

// The session of this browser. Sends the browser to the login when there is none; then it never answers.
export async function openSession() {
  const answer = await fetched("/session", { headers: { accept: "application/json" } });
  if (answer.status === 401) return toLogin();
  const said = await bodyOf(answer);
  if (!answer.ok) throw new Problem(answer.status, said);
  known = new Session(said);
  return known;
}

// `listener(session)`: once this browser has another session than before.
export const onSession = (listener) => {
  changed = listener;
};

// Whoever is refused may be somebody else by now: another tab logs in and out for all tabs.
async function problemOf(answer) {
  const said = await bodyOf(answer);
  const before = known;
  if (answer.status === 403 && before) {
    looking ??= openSession().finally(() => {
      looking = null;
    });
    const session = await looking;
    if (session.csrf !== before.csrf) {
      changed(session);
      said.detail = `This browser has logged in anew since, as ${session.name}. Look again at what you may do, and do it then.`;
    }
  }
  return new Problem(answer.status, said);
}

export function toLogin() {
  location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
  return new Promise(() => {});
}

export const keyPath = (key) => `/jobs/${encodeURIComponent(key)}`;

export function queryText(query) {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const each of [value].flat()) {
      if (each !== undefined && each !== null && each !== "") pairs.append(name, each);
    }
  }
  return pairs.size ? `?${pairs}` : "";
}

export const get = (path, query, signal) => call("GET", path, { query, signal });
// With a key: browsers send a request again by themselves where a connection breaks. Who has none left goes without.
export const post = (path, body, signal) =>
  call("POST", path, { body: body ?? {}, signal, keyed: true }).catch((problem) => {
    if (problem.reason !== "TOO_MANY_KEYS") throw problem;
    return call("POST", path, { body: body ?? {}, signal });
  });
// Of what answers with a secret: those calls take no Idempotency-Key, as no secret is kept with one.
export const postForSecret = (path, body) => call("POST", path, { body });
// `etag`: only if it is still what that is of; else a Problem of status 412.
export const patch = (path, body, etag) => call("PATCH", path, { body, etag });
export const put = (path, body) => call("PUT", path, { body: body ?? {} });
export const remove = (path, query) => call("DELETE", path, { query });

async function call(method, path, how) {
  const answer = await asked(method, path, how, "application/json");
  if (answer.status === 204) return null;
  if (!answer.ok) throw await problemOf(answer);
  return bodyOf(answer);
}

// The answer's head. Without a session it never answers, as the browser goes to the login.
async function asked(method, path, { query, body, signal, keyed, etag }, accept) {
  const headers = { accept };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (method !== "GET" && known?.csrf) headers["X-CSRF-Token"] = known.csrf;
  if (etag) headers["If-Match"] = `"${etag}"`;
  if (keyed) headers["Idempotency-Key"] = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  const answer = await fetched(apiPath(path) + queryText(query), {
    method,
    headers,
    signal,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return answer.status === 401 ? toLogin() : answer;
}

async function fetched(address, options) {
  try {
    return await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: `The controller at ${location.host} doesn't answer.` });
  }
}

async function bodyOf(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text);
  } catch {
    return { detail: text.slice(0, 300) || answer.statusText };
  }
}

// Lines of JSON of a stream, until it ends or `signal` stops it. With a `body` it is something that is done.
export async function* lines(path, query, signal, body) {
  const answer = await asked(body ? "POST" : "GET", path, { query, signal, body }, "application/x-ndjson");
  if (!answer.ok) throw await problemOf(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const found = (rest + part.value).split("\n");
    rest = found.pop();
    for (const line of found.filter((each) => each.trim())) {
      const told = JSON.parse(line);
      if (told.problem?.status) throw new Problem(told.problem.status, told.problem);
      yield told;
    }
  }
}
