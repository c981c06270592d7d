// A client of cronring's REST API, of `fetch` alone: Node 20, Deno, Bun and browsers have it.

import { KEYED, ROUTES, type Event, type Operations, type Problem } from "./cronring.js";

type Names = keyof Operations;
type Streams = { [Name in Names]: Operations[Name] extends { item: unknown } ? Name : never }[Names];
type Part<Name extends Names, Key extends string> = Operations[Name] extends { [K in Key]: infer Value } ? Value : never;
type Given<Name extends Names> = Pick<Operations[Name], Extract<keyof Operations[Name], "path" | "body">> & {
  query?: Part<Name, "query">;
};

/** What a controller refused. Decide by `problem.reason`; its other words are for people. */
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

/** Where controllers are: `urls` like http://127.0.0.1:7480. `tries`: of one call, over all of them. */
export interface Settings {
  urls: string[];
  token?: string;
  tries?: number;
}

const PAUSE_MS = 200;
const PAUSE_MAX_MS = 2_000;
const ASKED_MAX_MS = 60_000; // of what a Retry-After asks for
const LATER = new Set([429, 502, 503, 504]);

export class Cronring {
  #at = 0;

  constructor(readonly settings: Settings) {}

  /**
   * Asks for it, and asks again where that is safe: a change has a key, so it is done once. Throws Refused.
   *
   * Who has no key left (10,000 a day) goes on without: an answer that is lost then is an error, as for a secret.
   */
  async call<Name extends Exclude<Names, Streams>>(name: Name, given: Given<Name>): Promise<Part<Name, "answer">> {
    const headers: Record<string, string> = {};
    if (KEYED.has(name)) headers["idempotency-key"] = crypto.randomUUID();
    let repeats = !SECRET.has(name);
    let maybe = false; // a try may have done it
    for (let tried = 1; ; tried++) {
      let pause = Math.min(PAUSE_MS * 2 ** (tried - 1), PAUSE_MAX_MS) * (0.5 + Math.random());
      try {
        const answer = await this.#ask(name, given, headers);
        if (answer.status === 204) return undefined as Part<Name, "answer">;
        const body = await answer.json();
        if (answer.ok) return body;
        if (body.reason === "TOO_MANY_KEYS" && !maybe) {
          delete headers["idempotency-key"];
          repeats = false;
          continue;
        }
        // A controller gives a reason, and an `outcome` unless nothing was done. A proxy gives neither.
        maybe ||= !body.reason;
        const again = (LATER.has(answer.status) || body.reason === "KEY_IN_USE") && !body.outcome;
        if (!again || !(repeats || body.reason) || tried >= this.#tries) throw new Refused(body);
        pause = Math.max(pause, Math.min(1_000 * (Number(answer.headers.get("retry-after")) || 0), ASKED_MAX_MS));
      } catch (error) {
        if (error instanceof Refused || !repeats || tried >= this.#tries) throw error;
        maybe = true;
      }
      this.#at++;
      await new Promise((done) => setTimeout(done, pause));
    }
  }

  /** What a stream has, until it ends: lines of JSON. `key`: of an order that is to be given once. Throws Refused. */
  async *stream<Name extends Streams>(name: Name, given: Given<Name>, key = ""): AsyncGenerator<Part<Name, "item">> {
    const answer = await this.#ask(name, given, key ? { "idempotency-key": key } : {});
    if (!answer.ok) throw new Refused((await answer.json()) as Problem);
    let rest = "";
    for await (const part of answer.body!.pipeThrough(new TextDecoderStream()) as unknown as AsyncIterable<string>) {
      const lines = (rest + part).split("\n");
      rest = lines.pop()!;
      for (const line of lines.filter(Boolean)) {
        const item = JSON.parse(line);
        if (item.problem) throw new Refused(item.problem);
        yield item;
      }
    }
  }

  /** What happens from now on, for ever. When its controller goes, another goes on from the latest token. */
  async *events(after = ""): AsyncGenerator<Event> {
    for (let failed = 0; ; ) {
      try {
        for await (const event of this.stream("WatchEvents", { query: { resume_token: after } })) {
          failed = 0;
          after = event.resume_token || after;
          if (event.kind !== "KIND_POSITION") yield event;
        }
      } catch (error) {
        const slow = error instanceof Refused && error.problem.reason === "SLOW_READER";
        if ((error instanceof Refused && !slow && !LATER.has(error.problem.status)) || ++failed >= this.#tries) throw error;
      }
      this.#at++;
      await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
  }

  get #tries(): number {
    return this.settings.tries ?? 10;
  }

  async #ask(name: Names, given: object, headers: Record<string, string>): Promise<Response> {
    const { path = {}, query = {}, body } = given as Record<string, Record<string, unknown>>;
    const [method, route] = ROUTES[name];
    const filled = route.replace(/\{(\w+)\}/g, (_, field) => encodeURIComponent(String(path[field])));
    const url = new URL(this.settings.urls[this.#at % this.settings.urls.length] + filled);
    for (const [key, value] of Object.entries(query)) {
      for (const each of Array.isArray(value) ? value : [value]) if (each !== "") url.searchParams.append(key, String(each));
    }
    if (this.settings.token) headers["authorization"] = `Bearer ${this.settings.token}`;
    if (method === "GET" || !body) return fetch(url, { method, headers });
    headers["content-type"] = "application/json";
    return fetch(url, { method, headers, body: JSON.stringify(body) });
  }
}

/** Their answers have secrets, which are kept nowhere: they take no key, and are not sent again. */
const SECRET = new Set<string>(["CreateToken", "CreateRunnerGrant", "AddWebhook"]);
