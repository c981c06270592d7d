// Who may call, which runners may join, and where somebody is logged in.
import { html, useState } from "../base.mjs";
import { postForSecret, remove } from "../api.mjs";
import { inPath, Listing, Secret, when, words } from "../listing.mjs";
import { State } from "../parts.mjs";
import { quoted, wordOf } from "../words.mjs";

const DAY_MS = 86_400_000;
const ROLES = ["viewer", "outputs-viewer", "operator", "deployer", "consumer", "admin"];

const ended = (row) => row.revoked_at || row.ended || (row.expires_at && Date.parse(row.expires_at) < Date.now());
const stateOf = (row) =>
  html`<${State} is=${ended(row) ? "inactive" : "active"} text=${row.revoked_at ? "revoked" : row.ended ? wordOf(row.ended) : ended(row) ? "expired" : undefined} />`;
const grants = (row) => row.grants.map((each) => `${each.role}@${each.namespace}`).join(", ");
// Nobody gives, or takes away, what they don't have themselves.
const gives = (session, row) => row.grants.every((each) => session.may("admin", each.namespace));
const lasting = (days) => (Number(days) > 0 ? { lasts_ms: Math.round(Number(days) * DAY_MS) } : {});
const expires = (days) => ` --expires ${Number(days) > 0 ? `${days}d` : "never"}`;

export const Access = ({ session }) =>
  html`<h1>Access</h1><${Tokens} session=${session} /><${Grants} session=${session} /><${Sessions} session=${session} />`;

// A switch for those that have ended.
function useEnded(words) {
  const [all, set] = useState(false);
  return [
    all,
    html`<label class="check"><input type="checkbox" checked=${all} onChange=${() => set(!all)} /> ${words}</label>`,
  ];
}

function Tokens({ session }) {
  const [all, tools] = useEnded("Revoked ones, too");
  return html`<${Listing} level=${2} session=${session} of=${{
    title: "Tokens",
    says: "What programs and people call with. The secret itself is told once, when it is made.",
    path: "/tokens",
    query: { with_revoked: all || "" },
    rows: "tokens",
    keyOf: (row) => row.name,
    needs: ["admin"],
    columns: [
      { name: "Token", of: (row) => row.name },
      { name: "State", of: stateOf },
      { name: "May", of: grants },
      when("Last used", "last_used_at"),
      when("Ends", "expires_at"),
      when("Made", "created_at"),
      { name: "By", of: (row) => row.created_by },
      { name: "Revoked by", of: (row) => row.revoked_by },
    ],
    tools,
    make: [session.may("admin") && createToken(session.home("admin"))],
    deeds: (row) =>
      !row.revoked_at &&
      gives(session, row) && [
        {
          word: "Revoke",
          title: `Revoke the token ${row.name}`,
          verb: "Revoke it",
          typed: row.name,
          says: "A second later at most no call with it is answered, and browsers that logged in by it are logged out.",
          command: () => `cronring token revoke ${quoted(row.name)}`,
          act: () => remove(`/tokens${inPath(row.name)}`),
        },
      ],
    none: "There is no token.",
    command: "cronring token create --name ci --role deployer --namespace billing",
  }} />`;
}

const createToken = (namespace) => ({
  word: "Create a token",
  title: "Create a token",
  verb: "Create it",
  says: "Whoever has its secret may do what its role may. The secret is shown once.",
  undo: "revoke it.",
  fields: [
    { name: "name", label: "Name, in lists and wherever it did something", hint: "ci" },
    { name: "role", label: "Role", choices: ROLES, value: "viewer" },
    { name: "namespace", label: "Namespace; * for all", value: namespace },
    { name: "days", label: "Lasts so many days. Empty: for ever.", kind: "number", value: "90", optional: true },
  ],
  command: ({ name, role, namespace, days }) =>
    `cronring token create --name ${quoted(name || "NAME")} --role ${role} --namespace ${quoted(namespace)}${expires(days)}`,
  act: async ({ name, role, namespace, days }) => {
    const made = await postForSecret("/tokens", { name, grants: [{ role, namespace }], ...lasting(days) });
    return {
      shows: html`<${Secret} name=${name} secret=${made.secret}>The token ${name} may act as ${role} in ${namespace}.<//>`,
    };
  },
});

function Grants({ session }) {
  const [all, tools] = useEnded("Revoked ones, too");
  return html`<${Listing} level=${2} session=${session} of=${{
    title: "Runner grants",
    says: "What runners may host. A runner enrolls by the join token of a grant.",
    path: "/runner-grants",
    query: { with_revoked: all || "" },
    rows: "runner_grants",
    keyOf: (row) => row.name,
    needs: ["admin"],
    columns: [
      { name: "Grant", of: (row) => row.name },
      { name: "State", of: stateOf },
      { name: "Namespace", of: (row) => row.namespace },
      { name: "Modules", of: (row) => row.modules.join(" ") || "any" },
      { name: "May activate", of: (row) => (row.may_activate ? "yes" : "no") },
      {
        name: "Uses left",
        number: true,
        of: (row) => (row.may_enroll ? (row.uses_left ?? "any") : "none: certificates only"),
      },
      when("Enrolls until", "expires_at"),
      when("Made", "created_at"),
      { name: "By", of: (row) => row.created_by },
      { name: "Revoked by", of: (row) => row.revoked_by },
    ],
    tools,
    make: [session.may("admin") && createGrant(session.home("admin"))],
    deeds: (row) =>
      !row.revoked_at &&
      session.may("admin", row.namespace) && [
        {
          word: "Revoke",
          title: `Revoke the grant ${row.name}`,
          verb: "Revoke it",
          typed: row.name,
          says: "Nobody enrolls by it any more, and certificates that name it are worth nothing. Its runners lose their jobs.",
          command: () => `cronring runner-grant revoke ${quoted(row.name)}`,
          act: () => remove(`/runner-grants${inPath(row.name)}`),
        },
      ],
    none: "There is no grant.",
    command: "cronring runner-grant create --name billing --modules billing",
  }} />`;
}

const createGrant = (namespace) => ({
  word: "Create a grant",
  title: "Create a runner grant",
  verb: "Create it",
  says: "Whoever has its join token may enroll a runner for these modules. The token is shown once.",
  undo: "revoke it.",
  fields: [
    { name: "name", label: "Name: lower case letters, digits, hyphens", hint: "billing" },
    { name: "namespace", label: "Namespace", value: namespace },
    { name: "modules", label: "Modules. Empty: any of the namespace.", optional: true, hint: "invoices dunning" },
    { name: "uses", label: "So many runners may enroll. Empty: any number.", kind: "number", optional: true },
    { name: "days", label: "Enrolls for so many days. Empty: for ever.", kind: "number", value: "1", optional: true },
    { name: "may_activate", label: "A new version that they bring is active at once", kind: "check", value: false },
  ],
  command: ({ name, namespace, modules, uses, days, may_activate }) =>
    `cronring runner-grant create --name ${quoted(name || "NAME")} --namespace ${quoted(namespace)}` +
    (words(modules).length ? ` --modules ${words(modules).join(",")}` : "") +
    (uses ? ` --uses ${uses}` : "") +
    (may_activate ? " --may-activate" : "") +
    expires(days),
  act: async ({ name, namespace, modules, uses, days, may_activate }) => {
    const made = await postForSecret("/runner-grants", {
      name,
      namespace,
      modules: words(modules),
      may_activate: Boolean(may_activate),
      ...(uses ? { uses: Number(uses) } : {}),
      ...lasting(days),
    });
    return { shows: html`<${Secret} name=${name} secret=${made.secret}>A runner enrolls with this join token.<//>` };
  },
});

function Sessions({ session }) {
  const [all, tools] = useEnded("Ended ones, too");
  return html`<${Listing} level=${2} session=${session} of=${{
    title: "Browsers",
    says: "Where you are logged in; admins also see others.",
    path: "/sessions",
    query: { with_ended: all || "" },
    rows: "sessions",
    keyOf: (row) => row.id,
    columns: [
      { name: "Who", of: (row) => row.principal },
      { name: "State", of: stateOf },
      { name: "May", of: grants },
      { name: "From", of: (row) => row.origin },
      { name: "Said by", of: (row) => row.issuer || "a token" },
      when("Last used", "last_used_at"),
      when("Ends", "expires_at"),
      when("Made", "created_at"),
    ],
    tools,
    deeds: (row) =>
      !ended(row) && [
        {
          word: "Log out",
          title: `Log out the browser of ${row.principal}`,
          verb: "Log it out",
          says: `The browser at ${row.origin} has to log in again, a second later at most. If it is this one, so do you.`,
          undo: "log in again.",
          command: () => `cronring session revoke ${row.id}`,
          act: () => remove(`/sessions${inPath(row.id)}`),
        },
      ],
    none: "No browser is logged in.",
    command: "cronring login",
  }} />`;
}
