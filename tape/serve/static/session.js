"use strict";
// What a server adds to the page of a session: buttons that copy commands, and where it was started
// with `--write` buttons and keys that change title and labels, and move the session to the trash
// after a question.
//
//   data-edits   address of the changes (pages/changes); without it nothing can be changed
//   data-back    address of the list of sessions
//
// Foreign text goes through `textContent` only.
(() => {
  const { edits, back } = document.currentScript.dataset;
  const byId = (id) => document.getElementById(id);
  const el = (tag, cls, ...inside) => {
    const node = document.createElement(tag);
    if (cls) node.className = cls;
    node.append(...inside);
    return node;
  };
  const button = (cls, text, act) => {
    const node = el("button", cls, text);
    node.type = act ? "button" : "submit";
    if (act) node.addEventListener("click", act);
    return node;
  };
  // Without a clipboard, as at an address without TLS, the command is selected.
  for (const command of document.querySelectorAll(".command")) {
    const name = (text) => {
      copy.textContent = text;
      copy.setAttribute("aria-label", `${text} the command for ${command.dataset.agent}`);
    };
    const copy = button("copy", "", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        name("Copied");
      } catch {
        getSelection().selectAllChildren(command);
        name("Selected");
      }
      setTimeout(name, 2000, "Copy");
    });
    name("Copy");
    command.after(" ", copy);
  }
  if (!edits) return;

  const count = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
  const size = (bytes) => (bytes < 1e3 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

  // Returns what the server answered, with `ok`, and `said` in words.
  const ask = async (path, body) => {
    const sent = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    try {
      const answer = await fetch(`${edits}/${path}`, body && sent);
      if (answer.status === 401) return { said: "This page is not let in any more: open the address that the server printed, or log in again." };
      return { said: "This cannot be changed now.", ...await answer.json().catch(() => ({})), ok: answer.ok };
    } catch {
      return { said: "The server does not answer." };
    }
  };

  // The entry that a label is for: where the focus was last, or what was clicked, or the address.
  let chosen = "";
  const note = (event) => {
    const row = event.target.closest?.(".row[id]");
    if (row) chosen = row.id.slice(1);
  };
  byId("log").addEventListener("focusin", note);
  byId("log").addEventListener("click", note);
  const nameEntry = () => chosen || (/^#[0-9a-f]{4,40}$/.test(location.hash) ? location.hash.slice(1) : "");

  const done = el("span", "done");
  done.role = "status";
  // A dialog that is gone when it is closed; keys typed in it are not those of the page.
  const show = (title, ...inside) => {
    const heading = el("h2", "", title), wrong = el("p", "wrong");
    wrong.role = "alert";
    const dialog = el("dialog", "keys change", heading, ...inside, wrong);
    heading.id = "change-name";
    dialog.setAttribute("aria-labelledby", heading.id);
    dialog.addEventListener("keydown", (event) => event.stopPropagation());
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    return { dialog, fail: (text) => { wrong.textContent = text; } };
  };
  const field = (label, value) => {
    const input = el("input");
    input.value = value; input.autocomplete = "off"; input.spellcheck = false; input.required = true;
    return [el("label", "", label, input), input];
  };
  // `act` gets what was typed, and returns an answer; a good one closes the dialog.
  const form = (parts, name, act) => {
    const node = el("form", "", ...parts, el("p", "choices", button("plain-button strong", name), button("plain-button", "Cancel", () => node.closest("dialog").close())));
    node.addEventListener("submit", async (event) => {
      event.preventDefault();
      const answer = await act();
      if (!answer.ok) { node.closest("dialog").querySelector(".wrong").textContent = answer.said; return; }
      node.closest("dialog").close();
      done.textContent = answer.said;
    });
    return node;
  };
  const begin = async () => {
    done.textContent = "";
    const facts = await ask(`facts?entry=${nameEntry()}`);
    if (facts.ok) return facts;
    chosen = "";
    done.textContent = facts.said;
    return null;
  };

  const rename = async () => {
    const facts = await begin();
    if (!facts) return;
    const [label, input] = field("Title", facts.title);
    show("Rename the session", form([label], "Rename", () => ask("title", { title: input.value })));
    input.select();
  };
  const labelEntry = async () => {
    const facts = await begin();
    if (!facts) return;
    const [label, input] = field("Name", "");
    const list = el("ul", "labels");
    const draw = (labels) => list.replaceChildren(...labels.map(({ name, entry }) => {
      const remove = button("plain-button", "Remove", async () => {
        const answer = await ask("unlabel", { name });
        if (!answer.ok) { opened.fail(answer.said); return; }
        opened.fail("");
        done.textContent = answer.said;
        draw(labels.filter((one) => one.name !== name));
        input.focus();
      });
      remove.setAttribute("aria-label", `Remove the label ${name}`);
      return el("li", "", el("b", "", name), " ", el("small", "", entry.slice(0, 8)), " ", remove);
    }));
    draw(facts.labels);
    const opened = show("Label an entry", el("p", "says", facts.says), form([label], "Label", () => ask("label", { name: input.value, entry: facts.entry })), list);
    input.focus();
  };
  const discard = async () => {
    const facts = await begin();
    if (!facts) return;
    const what = `“${facts.title || "Without a title"}”, ${count(facts.branches, "branch", "branches")}, ${size(facts.bytes)}`;
    const { dialog, fail } = show("Move the session to the trash?", el("p", "says", what), el("p", "choices",
      button("plain-button strong", "Move to trash", async () => {
        const answer = await ask("trash", {});
        if (!answer.ok) { fail(answer.said); return; }
        const leave = el("a", "plain-button", "All sessions");
        leave.href = back;
        dialog.replaceChildren(el("h2", "", "Moved to the trash"), el("p", "says", answer.said), el("p", "choices", leave));
        dialog.addEventListener("close", () => location.assign(back));
        leave.focus();
      }), button("plain-button", "Cancel", () => dialog.close())));
    dialog.querySelector(".choices button:last-child").focus();
  };

  const KEYS = { r: rename, l: labelEntry, Delete: discard };
  const choices = [["Rename", rename, "r"], ["Label", labelEntry, "l"], ["Move to trash", discard, "Delete"]].map(([name, act, key]) => {
    const node = button("plain-button", name, act);
    node.setAttribute("aria-keyshortcuts", key);
    node.setAttribute("aria-haspopup", "dialog");
    return node;
  });
  byId("changes").append(...choices, " ", done);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "") || document.querySelector("dialog[open]")) return;
    const act = KEYS[event.key];
    if (act) { event.preventDefault(); act(); }
  });
})();
