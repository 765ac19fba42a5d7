"use strict";
// Draws a tape from the two blocks of data in this page. Nothing of it becomes markup: every text
// goes through `textContent`, and the policy in the head forbids everything but this script.
//
//   #archive  lines of `tape export`, as strings: header, blobs, phases with entries, journal, end
//   #view     {tape, cwd, branches [{name, head, current}], labels, calls, paths, changes}: what is easier
//             to say outside: which line is a head, and what calls and results do to files
//             where a server shows the page also {events, position}: what is written later is there,
//             {edits}: whether the session may be changed, and {damaged}: whether some of it is left out
//
//   entries --pathTo--> path --buildRows--> rows --fold--> shown rows --chunks--> near the viewport
(() => {
  const byId = (id) => document.getElementById(id);
  const read = (id) => JSON.parse(byId(id).textContent);
  const lines = read("archive");
  const view = read("view");
  const ROWS_A_CHUNK = 24, NEAR = 1800, MOST_TEXT = 60000, MOST_HITS = 300;

  // --- data -----------------------------------------------------------------------------------
  const HEAD = /^\{"id":"([0-9a-f]{40})","v":\d+,"parentId":(?:"([0-9a-f]{40})"|null),"n":(\d+),"time":"([^"]*)","type":"([^"]*)"/;
  const entries = new Map(), children = new Map(), blobs = new Map(), tips = new Set();  // tips: entries that nothing follows
  let firstTime = "", lastTime = "";
  const takeLine = (line, at) => {
    if (line.startsWith('{"blob":"')) { blobs.set(line.slice(9, 73), at); return; }
    const found = HEAD.exec(line);
    if (!found || entries.has(found[1])) return;
    const [, id, parent = null, n, time, type] = found;
    entries.set(id, { id, parent, n: +n, time, type, at });
    if (!firstTime || time < firstTime) firstTime = time;
    if (time > lastTime) lastTime = time;
    if (!children.has(id)) tips.add(id);
    if (!parent) return;
    tips.delete(parent);
    if (children.has(parent)) children.get(parent).push(id); else children.set(parent, [id]);
  };
  lines.forEach(takeLine);
  const dataOf = (entry) => {
    if (entry.data === undefined) {
      try { entry.data = JSON.parse(lines[entry.at]).data || {}; } catch { entry.data = {}; }
    }
    return entry.data;
  };
  const blobText = (hash) => {
    const bytes = blobBytes(hash);
    return bytes && new TextDecoder().decode(Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)));
  };
  const blobBytes = (hash) => {
    const at = blobs.get(hash);
    return at === undefined ? null : JSON.parse(lines[at]).data;
  };
  const isBlob = (value) => value !== null && typeof value === "object" && typeof value.$blob === "string";
  const headOf = (value) => (isBlob(value) ? value.head || "" : typeof value === "string" ? value : "");
  const contentOf = (data) => (Array.isArray(data.content) ? data.content : []);

  let heads, branch, labels, tree;
  const findHeads = () => {
    heads = view.branches.filter((one) => entries.has(one.head));
    const isHead = new Set(heads.map((one) => one.head));
    const undone = [...tips].filter((id) => !isHead.has(id)).sort((a, b) => entries.get(a).at - entries.get(b).at);
    undone.forEach((id) => heads.push({ name: view.damaged ? "cut off" : "undone", head: id, current: false, undone: true }));
    labels = Object.entries(view.labels).filter(([, id]) => entries.has(id));
  };
  findHeads();
  branch = heads.find((one) => one.current) || heads[0];
  const labelsOf = (id) => labels.filter(([, entry]) => entry === id).map(([name]) => name);

  const pathTo = (id) => {
    const path = [];
    for (let entry = entries.get(id); entry; entry = entries.get(entry.parent)) path.push(entry);
    return path.reverse();
  };

  // Each branch belongs below the one that it leaves: { branch, from (entry), count, below }.
  let owner;
  const buildTree = () => {
    const nodes = [];
    owner = new Map();
    const order = [...heads].sort((a, b) => (a.undone || 0) - (b.undone || 0) || (b.name === "main") - (a.name === "main"));
    for (const one of order) {
      let count = 0, entry = entries.get(one.head);
      const node = { branch: one, from: null, below: [], up: null, first: null };
      for (; entry && !owner.has(entry.id); entry = entries.get(entry.parent)) {
        owner.set(entry.id, node);
        if (entry.type === "user") node.first = entry;
        count += 1;
      }
      node.count = count;
      if (entry) { node.from = entry; node.up = owner.get(entry.id); node.up.below.push(node); }
      nodes.push(node);
    }
    tree = nodes;
  };
  buildTree();

  // --- small things ---------------------------------------------------------------------------
  // Every text comes through here: its control characters are made visible.
  const el = (tag, cls, ...inside) => {
    const node = document.createElement(tag);
    if (cls) node.className = cls;
    for (const one of inside) if (one !== null && one !== undefined && one !== "") node.append(typeof one === "string" ? visible(one) : one);
    return node;
  };
  const button = (cls, act, ...inside) => {
    const node = el("button", cls, ...inside);
    node.type = "button";
    node.addEventListener("click", act);
    return node;
  };
  // What has a scrollbar of its own is reached by keys, and has a name.
  const scrolling = (node, name) => { node.tabIndex = 0; node.role = "group"; node.ariaLabel = name; return node; };
  const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
  const entriesOf = (n) => count(n, "entry", "entries");
  const facts = (parts) => parts.filter(Boolean).flatMap((part, at) => (at ? [" ", el("span", "", part)] : [el("span", "", part)]));
  const money = (amount) => (amount >= 0.995 || amount === 0 ? `$${amount.toFixed(2)}` : `$${amount.toFixed(4)}`);
  const size = (bytes) => (bytes < 1e3 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
  const clock = (time) => time.slice(11, 16);
  const lasted = (ms) => (ms < 1000 ? `${ms} ms` : ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`);
  // Control characters are shown, not obeyed; colours of terminals are left out.
  const COLOURS = /\x1b\[[0-9;:]*m/g;
  const HIDDEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
  const visible = (text) => text.replace(COLOURS, "").replace(/\r\n/g, "\n").replace(HIDDEN, (c) => {
    const code = c.codePointAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
  });

  // --- Markdown -------------------------------------------------------------------------------
  const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]*?\S)\*\*|(?<![\w*])\*(?=[^\s*])([^*\n]*?[^\s*])\*(?![\w*])|(?<!\w)_(?=[^\s_])([^_\n]*?[^\s_])_(?!\w)|~~(?=\S)([^~\n]+)~~|\[([^\]\n]{1,500})\]\(([^()\s]{1,2000}(?:\([^()\s]*\)[^()\s]*)*)\)|(https?:\/\/[^\s<>()"'`]{1,2000}[^\s<>()"'`.,;:!?])/g;
  const link = (target, ...inside) => {
    if (!/^(https?:\/\/|mailto:)/i.test(target)) return el("span", "", ...inside, ` (${target})`);
    const node = el("a", "", ...inside);
    node.href = target; node.rel = "noopener noreferrer nofollow"; node.target = "_blank"; node.title = visible(target);
    return node;
  };
  const inline = (text, depth = 0) => {
    const out = [];
    let at = 0;
    for (const m of depth > 3 ? [] : text.matchAll(INLINE)) {
      out.push(text.slice(at, m.index));
      at = m.index + m[0].length;
      if (m[2] !== undefined) out.push(el("code", "", m[2].replace(/^ (.*\S.*) $/, "$1")));
      else if (m[3] !== undefined) out.push(el("strong", "", ...inline(m[3], depth + 1)));
      else if (m[4] !== undefined || m[5] !== undefined) out.push(el("em", "", ...inline(m[4] ?? m[5], depth + 1)));
      else if (m[6] !== undefined) out.push(el("s", "", ...inline(m[6], depth + 1)));
      else if (m[7] !== undefined) out.push(link(m[8], ...inline(m[7], depth + 1)));
      else out.push(link(m[9], m[9]));
    }
    out.push(text.slice(at));
    return out.filter((one) => one !== "");
  };
  const cells = (row) => row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim());
  const BULLET = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
  const STARTS = /^\s{0,3}(#{1,6}\s|>|```|~~~|([-*_])\s*(\2\s*){2,}$)/;
  const blocks = (rows, depth = 0) => {
    const out = [];
    const add = (...parts) => { const node = el(...parts); node.dir = "auto"; out.push(node); };
    for (let i = 0; i < rows.length;) {
      const row = rows[i];
      let m;
      if (!row.trim()) { i += 1; continue; }
      if ((m = /^\s*(`{3,}|~{3,})/.exec(row))) {
        const body = [];
        for (i += 1; i < rows.length && !rows[i].trim().startsWith(m[1]); i += 1) body.push(rows[i]);
        i += 1;
        out.push(scrolling(el("pre", "", body.join("\n")), "Code"));
      } else if ((m = /^\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$/.exec(row))) {
        add(`h${Math.min(m[1].length + 2, 5)}`, "", ...inline(m[2]));
        i += 1;
      } else if (/^\s{0,3}([-*_])\s*(\1\s*){2,}$/.test(row)) {
        out.push(el("hr"));
        i += 1;
      } else if (/^\s{0,3}>/.test(row) && depth < 6) {
        const body = [];
        for (; i < rows.length && /^\s{0,3}>/.test(rows[i]); i += 1) body.push(rows[i].replace(/^\s{0,3}> ?/, ""));
        add("blockquote", "", ...blocks(body, depth + 1));
      } else if (row.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(rows[i + 1] || "")) {
        const table = el("table", "", el("tr", "", ...cells(row).map((cell) => el("th", "", ...inline(cell)))));
        for (i += 2; i < rows.length && rows[i].includes("|"); i += 1) table.append(el("tr", "", ...cells(rows[i]).map((cell) => el("td", "", ...inline(cell)))));
        table.dir = "auto";
        out.push(scrolling(el("div", "grid", table), "Table"));
      } else if ((m = BULLET.exec(row)) && depth < 8) {
        const indent = m[1].length, ordered = /\d/.test(m[2]);
        const list = el(ordered ? "ol" : "ul");
        list.dir = "auto";
        if (ordered) list.start = parseInt(m[2], 10);
        while (i < rows.length && (m = BULLET.exec(rows[i])) && m[1].length >= indent && m[1].length < indent + 2 && /\d/.test(m[2]) === ordered) {
          const inner = [m[3]], under = m[1].length + m[2].length + 1;
          for (i += 1; i < rows.length; i += 1) {
            const lead = rows[i].search(/\S/);
            if (lead < 0) { if ((rows[i + 1] || "").search(/\S/) <= indent) break; inner.push(""); continue; }
            if (lead <= indent && (BULLET.test(rows[i]) || STARTS.test(rows[i]) || !rows[i - 1].trim())) break;
            inner.push(rows[i].slice(Math.min(lead, under)));
          }
          const made = blocks(inner, depth + 1);
          list.append(el("li", "", ...(made[0] && made[0].tagName === "P" ? [...made[0].childNodes, ...made.slice(1)] : made)));
          while (i < rows.length && !rows[i].trim() && BULLET.test(rows[i + 1] || "")) i += 1;
        }
        out.push(list);
      } else {
        const body = [row];
        for (i += 1; i < rows.length && rows[i].trim() && !STARTS.test(rows[i]) && !BULLET.test(rows[i]); i += 1) body.push(rows[i]);
        add("p", "", ...inline(body.map((one) => one.trim()).join("\n")));
      }
    }
    return out;
  };
  const prose = (text) => (text.length > MOST_TEXT ? el("div", "plain", text) : el("div", "prose", ...blocks(visible(text).split("\n"))));

  // --- parts of a row -------------------------------------------------------------------------
  const opened = new Map();  // key of what folds → whether somebody opened or closed it
  const wide = { thinking: false, output: false };
  const folding = (key, isOpen, cls, head, fill) => {
    const node = el("details", cls, head);
    const draw = () => { if (node.open && node.childElementCount === 1) { node.append(...[fill()].flat()); highlight(); } };
    node.open = opened.has(key) ? opened.get(key) : isOpen;
    draw();
    node.addEventListener("toggle", () => { draw(); if (node.isConnected) opened.set(key, node.open); });
    return node;
  };
  const turn = () => { const node = el("span", "turn", "›"); node.ariaHidden = "true"; return node; };
  // A text that may be long, or a blob: its beginning, and the rest on demand.
  const long = (value, make) => {
    const text = headOf(value);
    const part = make(visible(text.length > MOST_TEXT ? text.slice(0, MOST_TEXT) : text));
    const bytes = isBlob(value) ? value.bytes : text.length;
    if (!isBlob(value) && text.length <= MOST_TEXT) return [part];
    const more = button("more", () => {
      const all = isBlob(value) ? blobText(value.$blob) : text;
      if (all === null) { more.replaceWith(el("p", "note", "The rest is not in this file.")); return; }
      more.remove();
      part.textContent = visible(all);
    }, `Show all ${size(bytes)}`);
    return [part, more];
  };
  const PICTURES = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;
  const picture = (block) => {
    const hash = block.blob && block.blob.$blob, data = hash && blobBytes(hash);
    if (!data || !PICTURES.test(block.mime)) return el("p", "note", `[${block.mime || "file"}, ${size((block.blob && block.blob.bytes) || 0)}]`);
    const node = el("img");
    node.loading = "lazy"; node.alt = "Picture in the conversation"; node.src = `data:${block.mime};base64,${data}`;
    return node;
  };
  const output = (content) => content.flatMap((block) => {
    if (block.type === "text") return long(block.text, (text) => el("pre", "", text));
    if (block.type === "image") return [picture(block)];
    return [el("pre", "", visible(JSON.stringify(block, null, 1)).slice(0, MOST_TEXT))];
  });
  const outputBox = (...inside) => scrolling(el("div", "output", ...inside), "Output");
  const KIND = { "+": "a", "-": "d", "@": "u", h: "h", n: "n" };
  // Of the head of a patch only the path is drawn, and what `git` says of modes and renames.
  const diff = (text) => {
    const node = scrolling(el("div", "diff"), "Changes");
    for (const line of text.split("\n")) {
      const file = /^hdiff --git .* b\/(.*)$/.exec(line);
      if (!file && /^h(index |--- |\+\+\+ |diff --git )/.test(line)) continue;
      const kind = KIND[line[0]] || "";
      if (file && view.events) { node.append(el("div", kind, fileLink(file[1]))); continue; }
      node.append(el("div", kind, file ? file[1] : kind === "h" || kind === "n" ? line.slice(1) : line));
    }
    return node;
  };
  const fileLink = (path) => {
    const node = el("a", "", visible(path));
    node.href = `/file?${new URLSearchParams({ session: view.tape, path })}`;
    return node;
  };
  const longest = (text) => text.split("\n").length;

  const drawCall = (entry, at, result, where) => {
    const call = (view.calls[entry.id] || [])[at] || { head: "call", body: "" };
    const said = result ? dataOf(result) : null, key = `${entry.id}.${at}`;
    const content = said ? contentOf(said) : [];
    const text = content.map((block) => headOf(block.text)).join("\n").trim();
    const changes = result && view.changes[result.id];
    const body = changes || (said && said.is_error ? "" : call.body);
    const rows = text ? longest(text) : 0, large = content.find((block) => isBlob(block.text));
    const state = !said ? "no result" : said.is_error ? "failed" : large ? size(large.text.bytes) : rows ? count(rows, "line") : "";
    const count_ = el("span", "count", [state, said && said.duration_ms >= 1000 ? lasted(said.duration_ms) : ""].filter(Boolean).join(" · "));
    const head = el("summary", "", turn(), el("span", "head", visible(call.head)), count_);
    const node = el("div", said && said.is_error ? "call failed" : "call");
    if (where) node.append(el("p", "note", visible(where)));
    const isOpen = wide.output || (said !== null && said.is_error && rows < 20);
    node.append(folding(key, isOpen, "", head, () => [
      outputBox(...(content.length ? output(content) : [el("pre", "", said ? "(no output)" : "(no result on the tape)")])),
      ...(said && said.full ? [outputBox(el("p", "note", "In full"), ...long(said.full, (full) => el("pre", "", full)))] : []),
    ]));
    const paths = view.events && !changes ? (view.paths[entry.id] || [])[at] || [] : [];
    if (paths.length) node.append(el("p", "note", "Lines of ", ...paths.flatMap((path, number) => [number ? ", " : "", fileLink(path)])));
    if (body && longest(body) <= 80) node.append(diff(body));
    else if (body) node.append(folding(`${key}.diff`, false, "", el("summary", "", turn(), el("span", "head", `diff of ${longest(body)} lines`)), () => diff(body)));
    return node;
  };
  const usageOf = (data) => {
    const usage = data.usage || {}, cached = usage.cache_read || 0;
    const parts = [data.model || "", usage.input || cached ? `${(usage.input + cached + (usage.cache_write || 0)).toLocaleString("en")} in` : "",
      cached ? `${cached.toLocaleString("en")} cached` : "", usage.output ? `${usage.output.toLocaleString("en")} out` : "",
      data.cost ? money(data.cost.amount) : "", data.duration_ms ? lasted(data.duration_ms) : ""].filter(Boolean);
    return parts.length > 1 || (parts.length && data.model) ? el("div", "foot", ...facts(parts)) : null;
  };
  const thinking = (key, text) => folding(key, wide.thinking, "thinking", el("summary", "", turn(), "Thinking"), () => long(text, (part) => el("div", "plain", part)));
  const drawAnswer = (row) => {
    const data = dataOf(row.entry), node = el("section", "row");
    let calls = 0;
    contentOf(data).forEach((block, at) => {
      if (block.type === "thinking") node.append(block.text ? thinking(`${row.entry.id}.t${at}`, block.text) : el("p", "meta", "Thinking, not shown by its provider"));
      else if (block.type === "text") node.append(isBlob(block.text) ? el("div", "", ...long(block.text, (text) => el("div", "plain", text))) : prose(block.text || ""));
      else if (block.type === "tool_call") { node.append(drawCall(row.entry, calls, row.results[calls], row.places[calls])); calls += 1; }
      else if (block.type === "image") node.append(picture(block));
      else node.append(el("p", "meta plain", (view.searches[row.entry.id] || {})[at] || `[${block.type}]`));
    });
    const sources = view.sources[row.entry.id];
    if (sources) node.append(el("p", "meta", "Sources:"), el("ol", "", ...sources.map((page) => el("li", "", link(page.url, visible(page.title || page.url))))));
    if (data.error) node.append(el("p", "error", visible(`${data.stop_reason || "error"}: ${data.error.message || ""}`)));
    else if (data.stop_reason === "aborted") node.append(el("p", "meta", "Interrupted"));
    node.append(usageOf(data) || "");
    return node;
  };
  const drawPrompt = (row) => {
    const data = dataOf(row.entry), node = el("section", "row prompt");
    const who = row.entry.type === "user" ? "Prompt" : `Said by ${data.origin || "the program"}`;
    node.append(el("div", "who", el("span", "", who), el("span", "", `${clock(row.entry.time)} UTC`)));
    for (const block of contentOf(data)) {
      if (block.type === "text") node.append(...long(block.text, (text) => el("div", "plain", text)));
      else if (block.type === "image") node.append(picture(block));
      else node.append(el("p", "meta", `[${block.name || block.mime || block.type}]`));
    }
    return node;
  };
  const summaryText = (summary) => {
    if (typeof summary === "string" || isBlob(summary)) return headOf(summary);
    const parts = [];
    for (const [name, value] of Object.entries(summary || {})) {
      const title = name.replaceAll("_", " ").replace(/^./, (c) => c.toUpperCase());
      if (Array.isArray(value) ? value.length : value) parts.push(`### ${title}\n\n${Array.isArray(value) ? value.map((one) => `- ${String(one).replaceAll("\n", "\n  ")}`).join("\n") : value}`);
    }
    return parts.join("\n\n");
  };
  const KINDS = { compaction: "Compacted", handoff: "Handed off", merge: "Merged" };
  const drawAnchor = (row) => {
    const data = dataOf(row.entry), node = el("section", "row fold");
    const { before = 0, after = 0 } = data.tokens || {};
    const sizes = before ? `${[before, after].filter(Boolean).map((n) => n.toLocaleString("en")).join(" → ")} tokens` : "";
    const what = row.covers ? `${KINDS[data.kind] || "Summarised"} ${entriesOf(row.covers)}` : KINDS[data.kind] || "Summarised";
    node.append(el("div", "title", el("b", "", what), el("small", "", sizes)));
    const text = summaryText(data.summary);
    if (text) node.append(folding(`${row.entry.id}.s`, false, "", el("summary", "", turn(), "Summary that the model got"), () => prose(text)));
    if (row.covers) {
      const isOpen = foldsOpen.has(row.entry.id);
      node.append(button("open", () => {
        if (isOpen) foldsOpen.delete(row.entry.id); else foldsOpen.add(row.entry.id);
        showRows(); jump(row.entry.id, false);
      }, isOpen ? "Hide what it replaced" : `Show the ${entriesOf(row.covers)} it replaced`));
    }
    return node;
  };
  const drawMeta = (row) => {
    const data = dataOf(row.entry), type = row.entry.type;
    const words = { start: () => `Session in ${data.cwd}`, meta: () => (data.cwd ? `Continued in ${data.cwd}` : "Facts"),
      model: () => `Model ${data.provider}/${data.model}${data.effort ? `, effort ${data.effort}` : ""}`,
      mode: () => `Permissions: ${data.permission}`, branch: () => `Branch ${data.branch}`,
      error: () => `${data.class}: ${headOf(data.message)}`, note: () => headOf(data.text),
      repair: () => `Repaired: ${data.why || data.kind}`, usage: () => `${data.purpose}: ${data.model}`,
      "agent.start": () => `Sub-agent ${data.agent} started: ${headOf(data.task)}`,
      "agent.end": () => `Sub-agent ${data.agent} ${data.status}`,
      approval: () => `${data.decision} by ${data.by}${data.reason ? `: ${data.reason}` : ""}`,
      context: () => `${data.origin || "Context"} for the model`,
      "tool.result": () => `Result of ${data.name}`,
      checkpoint: () => (data.why === "restore" ? `Files restored${data.environment ? ` in ${data.environment.name}` : ""}` : "Files saved") };
    const said = visible((words[type] || (() => (data.kind ? `${type}: ${data.kind}` : type)))()).slice(0, 300);
    const node = el("section", type === "error" ? "row meta error" : "row meta");
    const body = () => {
      if (type === "context" || type === "tool.result") return [el("div", "call", outputBox(...output(contentOf(data))))];
      const shown = view.changes[row.entry.id];
      if (shown) return [diff(shown)];
      return [el("div", "call", outputBox(...long(JSON.stringify(data, null, 1), (text) => el("pre", "", text))))];
    };
    node.append(folding(`${row.entry.id}.m`, false, "", el("summary", "", turn(), said), body));
    return node;
  };
  const drawGroup = (row) => {
    const names = [...new Set(row.group.map((one) => dataOf(one.entry).kind || one.entry.type))].join(", ");
    const node = el("section", "row meta");
    const shown_ = row.group.length === 1 ? visible(names) : `${row.group.length} other entries: ${visible(names)}`;
    node.append(folding(`${row.id}.m`, false, "", el("summary", "", turn(), shown_.slice(0, 300)), () => row.group.map((one) => {
      const text = JSON.stringify(dataOf(one.entry), null, 1);
      return el("div", "call", outputBox(...long(text, (part) => el("pre", "", part))));
    })));
    return node;
  };
  const drawForks = (row) => {
    const node = el("section", "fork", "Also from here: ");
    row.forks.forEach((fork, at) => node.append(at ? ", " : "", button("", () => choose(fork.branch, fork.from.id), fork.branch.name), ` (${entriesOf(fork.count)})`));
    return node;
  };
  const DRAW = { user: drawPrompt, assistant: drawAnswer, anchor: drawAnchor, meta: drawMeta, group: drawGroup, forks: drawForks,
    day: (row) => el("div", "day", row.day) };

  // --- rows -----------------------------------------------------------------------------------
  const QUIET = new Set(["start", "tool.start", "checkpoint", "approval", "branch", "repair"]);
  const KNOWN = new Set(["meta", "model", "mode", "error", "note", "usage", "agent.start", "agent.end", "context", "tool.result", "checkpoint", "redact"]);
  const FIRST = new Set(["model", "mode"]);  // what a session begins with is said above
  let rows = [], shown = [], place = new Map(), path = null, foldsOpen = new Set();
  const onPath = { has: (id) => path.index.has(id) };
  // What is known after some entries of a path: the next one adds to it.
  const beginPath = () => ({ index: new Map(), waiting: new Map(), forks: findForks(), day: "", isBegun: false, where: "", sums: { cost: null, input: 0, made: 0 } });
  const findForks = () => {
    const forks = new Map(), on = new Set(pathTo(branch.head).map((entry) => entry.id));
    for (const node of tree) {
      let from = entries.get(node.branch.head), number = 0;
      for (; from && !on.has(from.id); from = entries.get(from.parent)) number += 1;
      if (from && number) forks.set(from.id, [...(forks.get(from.id) || []), { branch: node.branch, from, count: number }]);
    }
    return forks;
  };
  // Adds what an entry shows to the rows; returns a row that folds others, which has no place yet.
  const addRows = (entry) => {
    const type = entry.type, at = path.index.size, made = rows;
    let fold = null;
    path.index.set(entry.id, at);
    path.day ||= entry.time.slice(0, 10);
    path.isBegun ||= type === "user" || type === "assistant";
    const row = { entry, at, kind: "meta", id: entry.id };
    const today = entry.time.slice(0, 10);
    const add = (one) => {
      if (one.kind === "meta" && !KNOWN.has(type)) {  // entries of programs, one line for a run of them
        const last = made.at(-1);
        if (last && last.kind === "group") { last.group.push(one); place.set(entry.id, last.id); return; }
        made.push({ ...one, kind: "group", group: [one] });
        return;
      }
      if (today !== path.day && one.kind !== "meta") { path.day = today; made.push({ kind: "day", day: today, at, entry, id: null }); }
      made.push(one);
    };
    if (type === "assistant") {
      row.kind = "assistant"; row.results = []; row.places = [];
      contentOf(dataOf(entry)).filter((block) => block.type === "tool_call").forEach((call, number) => {
        row.results.push(null);
        path.waiting.set(call.id, { row, number });
      });
      add(row);
    } else if (type === "tool.start") {  // says where a call acts, where that is another place than before
      const call = path.waiting.get(dataOf(entry).call_id), where = dataOf(entry).environment?.name || "";
      if (call && where !== path.where) { call.row.places[call.number] = where ? `In ${where}:` : "On the machine of the session:"; path.where = where; }
    } else if (type === "tool.result") {
      const call = path.waiting.get(dataOf(entry).call_id);
      if (call && !call.row.results[call.number]) { call.row.results[call.number] = entry; place.set(entry.id, call.row.entry.id); }
      else add(row);
    } else if (type === "user") { row.kind = "user"; add(row); }
    else if (type === "context") { row.kind = ["steering", "follow_up"].includes(dataOf(entry).origin) ? "user" : "meta"; add(row); }
    else if (type === "anchor") {
      row.kind = "anchor";
      const covers = dataOf(entry).covers, first = covers && path.index.get(covers.from), last = covers && path.index.get(covers.to);
      if (first !== undefined && last !== undefined && covers && first <= last && last < at && dataOf(entry).kind !== "merge") {
        row.covers = covers.count; row.range = [first, last]; fold = row;
      } else add(row);
    } else if ((!QUIET.has(type) && (path.isBegun || !FIRST.has(type))) || (type === "checkpoint" && dataOf(entry).why === "restore")) add(row);
    if (path.forks.has(entry.id)) made.push({ kind: "forks", forks: path.forks.get(entry.id), entry, at, id: null });
    addSums(entry);
    return fold;
  };
  const addSums = (entry) => {
    if (entry.type !== "assistant" && entry.type !== "usage") return;
    const { usage = {}, cost: paid } = dataOf(entry), sums = path.sums;
    sums.input += (usage.input || 0) + (usage.cache_read || 0) + (usage.cache_write || 0);
    sums.made += usage.output || 0;
    if (paid) sums.cost = (sums.cost || 0) + paid.amount;
  };
  const buildRows = () => {
    rows = []; path = beginPath();
    const folds = pathTo(branch.head).map(addRows).filter(Boolean), made = rows;
    for (const fold of folds) {  // a fold stands where its first entry was
      const [first] = fold.range, before = made.findIndex((row) => row.at >= first - 0.5);
      made.splice(before < 0 ? made.length : before, 0, { ...fold, at: first - 0.5, anchored: fold.at });
    }
    rows.folds = folds;
  };
  // Where the branch only grew, adds the rows of its new entries to the tree and to what is shown;
  // returns false where more than that changed, and everything has to be built again.
  const growRows = (was, before) => {
    const added = [];
    const isSame = (one, at) => one.name === before[at].name && (one === branch || one.head === before[at].head);
    if (branch.undone || branch.name !== was.name || heads.length !== before.length || !heads.every(isSame)) return false;
    for (let entry = entries.get(branch.head); entry?.id !== was.head; entry = entries.get(entry.parent)) {
      if (!entry || owner.has(entry.id)) return false;
      added.unshift(entry);
    }
    if (added.some((entry) => entry.type === "anchor")) return false;
    const node = tree.find((one) => one.branch.name === was.name);
    tree.forEach((one) => { one.branch = heads[before.indexOf(one.branch)]; });
    for (const entry of added) {
      owner.set(entry.id, node);
      if (entry.type === "user") node.first ||= entry;
      node.count += 1;
      const many = rows.length;
      addRows(entry);
      shown.push(...rows.slice(many));
    }
    return true;
  };
  const isWithin = (row, fold) => row.id !== fold.id && (row.anchored ?? row.at) >= fold.range[0] && (row.anchored ?? row.at) <= fold.range[1];
  const isFolded = (row) => rows.folds.some((fold) => isWithin(row, fold) && !foldsOpen.has(fold.id));
  const guess = (row) => {
    if (row.kind === "day" || row.kind === "forks" || row.kind === "meta" || row.kind === "group") return 32;
    if (row.kind === "anchor") return 130;
    const wide_ = Math.max(20, Math.min(90, (log.clientWidth || 700) / 8));
    let high = row.kind === "user" ? 90 : 40;
    for (const block of contentOf(dataOf(row.entry))) {
      if (block.type === "text") { const text = headOf(block.text).slice(0, MOST_TEXT); high += 26 * Math.ceil(text.length / wide_) + 14 * longest(text); }
      else if (block.type === "tool_call") high += 48;
      else if (block.type === "thinking") high += 34;
      else high += 60;
    }
    return high;
  };

  // --- drawing near the viewport --------------------------------------------------------------
  const log = byId("log");
  let chunks = [];
  // What is in sight is drawn at once, what is only near later, one chunk in a task: keys and
  // scrolling wait for none of it.
  let later = [];
  const near = new IntersectionObserver((seen) => {
    const isIdle = later.length === 0;
    for (const { target, isIntersecting, boundingClientRect: box } of seen) {
      const chunk = chunks[target.dataset.chunk];
      if (!chunk || chunk.node !== target) continue;
      chunk.isNear = isIntersecting;
      if (!isIntersecting) clear(chunk, box.height);
      else if (box.bottom > 0 && box.top < innerHeight) draw(chunk);
      else later.push(chunk);
    }
    highlight();
    if (isIdle && later.length) setTimeout(drawLater);
  }, { rootMargin: `${NEAR}px 0px` });
  const drawLater = () => {
    const chunk = later.shift();
    if (chunk.isNear && chunk.node.isConnected) { draw(chunk); highlight(); }
    if (later.length) setTimeout(drawLater);
  };
  const anchors = CSS.supports("overflow-anchor", "auto");
  const drawRow = (row) => {
    const node = DRAW[row.kind](row);
    if (row.id) {
      node.id = `e${row.id}`;
      const where = el("a", "where", `${row.entry.n}`);
      where.href = `#${row.id.slice(0, 12)}`; where.title = `Entry ${row.id.slice(0, 12)}, ${row.entry.time.slice(0, 16).replace("T", " ")} UTC`;
      node.prepend(where);
      for (const name of labelsOf(row.id)) node.prepend(el("div", "foot", `Label ${name}`));
    }
    return node;
  };
  // What a row shows; where that is the same it need not be drawn again.
  const keyOf = (row) => [row.kind, row.id, row.at, row.day, row.covers, foldsOpen.has(row.id), row.group && row.group.length,
    row.results && row.results.map((one) => (one ? 1 : 0)).join(""), row.forks && row.forks.map((fork) => `${fork.branch.name} ${fork.count}`).join(),
    row.id && labelsOf(row.id).join()].join(" ");
  const draw = (chunk) => {
    if (chunk.isDrawn) return;
    chunk.isDrawn = true;
    const before = anchors ? null : chunk.node.getBoundingClientRect();
    chunk.keys = chunk.rows.map(keyOf);
    chunk.node.replaceChildren(...chunk.rows.map(drawRow));
    chunk.node.style.height = "";
    if (before && before.bottom < 0) scrollBy(0, chunk.node.getBoundingClientRect().height - before.height);
  };
  const clear = (chunk, height) => {
    if (!chunk.isDrawn || chunk.node.contains(document.activeElement)) return;
    chunk.node.style.height = `${height}px`;
    chunk.node.replaceChildren();
    chunk.isDrawn = false;
  };
  const guessAll = (part) => `${part.reduce((sum, row) => sum + guess(row), 0)}px`;
  const makeChunk = (part, number) => {
    const node = el("div", "chunk");
    node.dataset.chunk = number;
    node.style.height = guessAll(part);
    return { rows: part, keys: [], node, isDrawn: false };
  };
  const showRows = () => {
    near.disconnect();
    shown = rows.filter((row) => !isFolded(row));
    chunks = [];
    for (let at = 0; at < shown.length; at += ROWS_A_CHUNK) {
      chunks.push(makeChunk(shown.slice(at, at + ROWS_A_CHUNK), chunks.length));
    }
    log.replaceChildren(...chunks.map((chunk) => chunk.node));
    if (chunks[0]) draw(chunks[0]);
    chunks.forEach((chunk) => near.observe(chunk.node));
  };
  // As `showRows`, but what is drawn and shows the same stays as it is, with its place and focus.
  // The chunks before the one at `from` have the rows that they had.
  const updateRows = (isAtEnd, from) => {
    const many = Math.ceil(shown.length / ROWS_A_CHUNK);
    for (const chunk of chunks.splice(many)) { near.unobserve(chunk.node); chunk.node.remove(); }
    for (let number = 0; number < many; number += 1) {
      const chunk = chunks[number];
      if (number < from && !chunk.isDrawn) continue;
      const part = shown.slice(number * ROWS_A_CHUNK, (number + 1) * ROWS_A_CHUNK);
      if (!chunk) {
        const made = makeChunk(part, number);
        chunks.push(made);
        log.append(made.node);
        if (isAtEnd) draw(made);
        near.observe(made.node);
      } else if (!chunk.isDrawn) {
        if (part.length !== chunk.rows.length) chunk.node.style.height = guessAll(part);
        chunk.rows = part;
      } else {
        const before = new Map(chunk.keys.map((key, at) => [key, chunk.node.children[at]]));
        const keys = part.map(keyOf), nodes = part.map((row, at) => before.get(keys[at]) || drawRow(row)), stay = new Set(nodes);
        const focus = document.activeElement, within = chunk.node.contains(focus) && focus.closest(".row");
        for (const node of [...chunk.node.children]) if (!stay.has(node)) node.remove();
        nodes.forEach((node, at) => { if (chunk.node.children[at] !== node) chunk.node.insertBefore(node, chunk.node.children[at] || null); });
        if (within && !within.isConnected) byId(within.id)?.querySelector("summary, button, a")?.focus({ preventScroll: true });
        chunk.rows = part; chunk.keys = keys;
      }
    }
  };
  const chunkOf = (id) => chunks.find((chunk) => chunk.rows.some((row) => row.id === id));
  const jump = (id, marks = true) => {
    const target = place.get(id) || id;
    let chunk = chunkOf(target);
    if (!chunk) {
      const row = rows.find((one) => one.id === target) || rows.find((one) => one.entry.n >= entries.get(target).n);
      if (!row) return;
      rows.folds.filter((fold) => isWithin(row, fold)).forEach((fold) => foldsOpen.add(fold.id));
      showRows();
      chunk = chunkOf(row.id);
      if (!chunk) return;
    }
    draw(chunk);
    const node = byId(`e${target}`) || chunk.node;
    const go = () => node.isConnected && node.scrollIntoView({ block: "start" });
    go();
    requestAnimationFrame(() => { go(); highlight(); requestAnimationFrame(go); });
    if (marks) { node.classList.add("aim"); setTimeout(() => node.classList.remove("aim"), 1700); }
  };

  // --- the side -------------------------------------------------------------------------------
  const side = byId("side"), menu = byId("menu");
  const closeSide = () => { side.classList.remove("open"); menu.ariaExpanded = "false"; };
  const item = (act, current, ...inside) => {
    const node = button("item", () => { closeSide(); act(); }, ...inside);
    if (current) node.setAttribute("aria-current", "true");
    return node;
  };
  const firstLine = (entry) => visible(contentOf(dataOf(entry)).map((block) => headOf(block.text)).join(" ").trim().slice(0, 160).replace(/\s+/g, " "));
  const sideOf = (one) => (one.undone ? `${view.tape}@${one.head}` : `${view.tape}:${one.name}`);
  const compareLink = (other) => {
    const node = el("a", "compare", "Compare");
    node.href = `/compare?${new URLSearchParams({ a: sideOf(branch), b: sideOf(other) })}`;
    node.ariaLabel = `Compare ${branch.name} with ${other.name}`;
    return node;
  };
  const drawTree = (node) => {
    const said = node.first ? firstLine(node.first) : "";
    const act = () => choose(node.branch, node.from ? node.from.id : null);
    const part = el("li", node.branch.undone ? "gone" : "", item(act, node.branch === branch,
      el("b", "", node.branch.name), " ", el("small", "", node.from ? `${entriesOf(node.count)} from ${node.from.n}` : entriesOf(node.count)), el("span", "text", node.from ? said : "")));
    if (view.events && node.branch !== branch && branch) part.append(compareLink(node.branch));
    if (node.below.length) part.append(el("ul", "", ...node.below.map(drawTree)));
    return part;
  };
  const drawBranches = () => el("ul", "", ...tree.filter((node) => !node.up).map(drawTree));
  const isStop = (row) => (row.kind === "user" && row.entry.type === "user") || row.kind === "anchor";
  const listPrompts = () => rows.filter(isStop);
  const countPrompts = (prompts) => String(prompts.filter((row) => row.kind === "user").length);
  const drawPromptLink = (row) => {
    const node = el("li", "", item(() => jump(row.id), false, row.kind === "anchor" ? el("small", "", `${KINDS[dataOf(row.entry).kind] || "Summary"}`) : el("span", "text", firstLine(row.entry) || "(no text)")));
    node.dataset.id = row.id;
    return node;
  };
  const drawSide = () => {
    const parts = [el("h2", "", el("span", "", "Branches")), drawBranches()];
    if (labels.length) parts.push(el("h2", "", el("span", "", "Labels")), el("ul", "", ...labels.map(([name, id]) => el("li", "", item(() => reveal(id), false, el("b", "", name), " ", el("small", "", String(entries.get(id).n)))))));
    const prompts = listPrompts();
    parts.push(el("h2", "", el("span", "", "Prompts"), el("span", "", countPrompts(prompts))), el("ul", "outline", ...prompts.map(drawPromptLink)));
    const isNew = !side.hasChildNodes();
    side.replaceChildren(...parts);
    if (!isNew) side.scrollTop = 0;
  };
  // While a session is written: the branches, and what is new of the prompts.
  const updateSide = (hasLabels) => {
    if (wanted) return;  // hits are listed there
    const all = () => [...side.querySelectorAll("button, a")], at = side.contains(document.activeElement) ? all().indexOf(document.activeElement) : -1, top = side.scrollTop;
    const outline = side.querySelector(".outline"), prompts = listPrompts(), known = outline ? [...outline.children] : [];
    // Prompts are only added at the end, unless the branch moved back: then the last one tells.
    const last = known.at(-1);
    if (!outline || hasLabels || (last && prompts[known.length - 1]?.id !== last.dataset.id)) drawSide();
    else {
      side.querySelector("ul").replaceWith(drawBranches());
      outline.append(...prompts.slice(known.length).map(drawPromptLink));
      outline.previousElementSibling.lastElementChild.textContent = countPrompts(prompts);
    }
    side.scrollTop = top;
    if (at >= 0 && !side.contains(document.activeElement)) all()[at]?.focus({ preventScroll: true });
  };
  const choose = (next, at) => {
    branch = heads.find((one) => one.name === next.name && one.head === next.head) || next;  // it may be drawn for long
    buildRows(); showRows(); drawSide(); drawSums();
    if (at) jump(at); else scrollTo(0, 0);
  };
  const reveal = (id) => {
    if (onPath.has(id)) { jump(id); return; }
    const holder = heads.find((one) => pathTo(one.head).some((entry) => entry.id === id));
    if (holder) choose(holder, id);
  };
  const drawSums = () => {
    const { cost, input, made } = path.sums;
    const parts = [`Branch ${branch.name}`, entriesOf(path.index.size), input ? `${input.toLocaleString("en")} tokens in` : "", made ? `${made.toLocaleString("en")} out` : "", cost === null ? "" : money(cost)];
    byId("sums").replaceChildren(...facts(parts));
  };

  // --- search ---------------------------------------------------------------------------------
  const find = byId("find");
  const UNSAID = new Set(["wire", "type", "id", "call_id", "mime"]);
  const collect = (value, out, depth = 0) => {
    if (typeof value === "string") out.push(value);
    else if (isBlob(value)) out.push(value.head || "");
    else if (Array.isArray(value)) value.forEach((one) => collect(one, out, depth + 1));
    else if (value && typeof value === "object" && depth < 8) Object.entries(value).forEach(([name, one]) => { if (!UNSAID.has(name)) collect(one, out, depth + 1); });
  };
  const SAID = new Set(["user", "assistant", "tool.result", "context", "anchor", "error", "note"]);
  const textOf = (entry) => {
    if (entry.text === undefined) {
      const out = [], data = dataOf(entry);
      collect(data.content || data.summary || data.message || data.text || "", out);
      entry.text = visible(out.join("\n"));
    }
    return entry.text;
  };
  let wanted = "";
  const highlight = () => {
    if (!window.Highlight || !CSS.highlights) return;
    const ranges = [];
    if (wanted) {
      const walk = document.createTreeWalker(log, NodeFilter.SHOW_TEXT);
      for (let node; (node = walk.nextNode()) && ranges.length < 2000;) {
        const text = node.data.toLowerCase();
        if (text.length !== node.data.length) continue;
        for (let at = text.indexOf(wanted); at >= 0 && ranges.length < 2000; at = text.indexOf(wanted, at + wanted.length)) {
          const range = new Range();
          range.setStart(node, at); range.setEnd(node, at + wanted.length);
          ranges.push(range);
        }
      }
    }
    if (ranges.length) CSS.highlights.set("found", new Highlight(...ranges)); else CSS.highlights.delete("found");
  };
  const search = () => {
    wanted = find.value.trim().toLowerCase();
    find.parentElement.classList.toggle("searching", wanted !== "");
    highlight();
    if (!wanted) { drawSide(); closeSide(); return; }
    const hits = [];
    let total = 0;
    for (const entry of entries.values()) {
      if (!SAID.has(entry.type)) continue;
      const text = textOf(entry), at = text.toLowerCase().indexOf(wanted);
      if (at < 0) continue;
      total += 1;
      if (hits.length < MOST_HITS) hits.push([entry, text, at]);
    }
    const found = hits.map(([entry, text, at]) => {
      const from = Math.max(0, at - 40), mark = el("mark", "", text.slice(at, at + wanted.length));
      const name = { user: "Prompt", assistant: "Answer", "tool.result": dataOf(entry).name || "Result", anchor: "Summary" }[entry.type] || entry.type;
      return el("li", "", item(() => show(entry), false, el("small", "", `${entry.n} · ${name}${onPath.has(entry.id) ? "" : " · another branch"}`),
        el("span", "text", from ? "…" : "", text.slice(from, at).replace(/\s+/g, " "), mark, text.slice(at + wanted.length, at + wanted.length + 120).replace(/\s+/g, " "))));
    });
    side.replaceChildren(el("h2", "", el("span", "", total ? "Found in" : "Nothing found"), el("span", "", total > MOST_HITS ? `${MOST_HITS} of ${entriesOf(total)}` : total ? entriesOf(total) : "")), el("ul", "outline", ...found));
    side.classList.add("open");
    menu.ariaExpanded = "true";
  };
  // Opens the part of an entry that holds what was looked for.
  const show = (entry) => {
    const owner = place.get(entry.id);
    if (owner) {
      const row = rows.find((one) => one.id === owner);
      opened.set(`${owner}.${row ? row.results.indexOf(entry) : 0}`, true);
    }
    if (entry.type === "assistant") contentOf(dataOf(entry)).forEach((block, at) => { if (block.type === "thinking" && headOf(block.text).toLowerCase().includes(wanted)) opened.set(`${entry.id}.t${at}`, true); });
    if (entry.type === "anchor") opened.set(`${entry.id}.s`, true);
    opened.set(`${entry.id}.m`, true);
    const chunk = chunkOf(owner || entry.id);
    if (chunk) { chunk.isDrawn = false; draw(chunk); }
    reveal(entry.id);
  };
  let timer = 0;
  find.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 120); });

  // --- the bar --------------------------------------------------------------------------------
  const redraw = () => { const top = chunks.filter((chunk) => chunk.isDrawn); top.forEach((chunk) => { chunk.isDrawn = false; draw(chunk); }); highlight(); };
  for (const what of ["thinking", "output"]) {
    byId(what).addEventListener("click", (event) => {
      wide[what] = !wide[what];
      event.currentTarget.ariaPressed = String(wide[what]);
      for (const key of [...opened.keys()]) if (/\.t\d+$/.test(key) === (what === "thinking")) opened.delete(key);
      redraw();
    });
  }
  // --- what is written meanwhile ---------------------------------------------------------------
  let newer = null, unseen = 0;
  const distance = () => document.documentElement.scrollHeight - innerHeight - scrollY;
  const noteUnseen = (more) => {
    unseen = more ? unseen + more : 0;
    if (!newer && !unseen) return;
    if (!newer) { newer = button("newer", () => { noteUnseen(0); scrollTo(0, document.documentElement.scrollHeight); }); document.body.append(newer); }
    newer.textContent = `${count(unseen, "new entry", "new entries")} ↓`;
    newer.hidden = unseen === 0;
  };
  const describePeriod = () => {
    const first = firstTime, last = lastTime;
    const end = first.slice(0, 10) === last.slice(0, 10) ? clock(last) : `${last.slice(0, 10)}, ${clock(last)}`;
    return `${first.slice(0, 10)}, ${clock(first)} to ${end} UTC`;
  };
  const take = (news) => {
    const isAtEnd = distance() < 80, before = path?.index.size ?? 0, named = JSON.stringify(labels), was = branch, headsBefore = heads;
    for (const line of news.lines) takeLine(line, lines.push(line) - 1);
    for (const part of ["calls", "paths", "changes", "searches", "sources"]) Object.assign(view[part], news.view[part]);
    view.branches = news.view.branches; view.labels = news.view.labels;
    findHeads();
    const isSame = (one) => was && one.name === was.name && (!one.undone || one.head === was.head);
    branch = heads.find(isSame) || heads.find((one) => one.current) || heads[0];
    if (!branch) return;
    const old = shown.length;
    if (was && growRows(was, headsBefore)) updateRows(isAtEnd, Math.floor(old / ROWS_A_CHUNK));
    else { buildTree(); buildRows(); shown = rows.filter((row) => !isFolded(row)); updateRows(isAtEnd, 0); }
    updateSide(JSON.stringify(labels) !== named); drawSums(); highlight();
    if (news.title) {
      const title = visible(news.title).replace(/\s+/g, " ");
      document.title = title;
      for (const node of document.querySelectorAll(".bar .name, .masthead h1")) if (node.textContent !== title) node.textContent = title;
    }
    byId("entries")?.replaceChildren(entriesOf(entries.size));
    byId("period")?.replaceChildren(describePeriod());
    if (isAtEnd) scrollTo(0, document.documentElement.scrollHeight); else if (path.index.size > before) noteUnseen(path.index.size - before);
  };
  // One stream while somebody looks: a browser has few connections for all of its tabs. Where it
  // ends, because the server was started again or the machine slept, the next one begins behind the
  // last entry that came.
  const LOST = 500, LONGEST_WAIT = 5000, UNSEEN = 15000;
  const OUTSIDE = "This page is not let in any more: open the address that the server printed, or log in again.";
  const REFUSED = { 401: OUTSIDE, 403: OUTSIDE, 404: "This session is not here any more." };
  const listen = () => {
    const mark = byId("live"), seen = () => document.visibilityState === "visible";
    let stream = null, wait = LOST, timer = 0, last = view.position;
    const say = (state, text) => { mark.className = `live ${state}`; if (mark.textContent !== text) mark.textContent = text; };
    const refusal = el("p", "refusal");
    refusal.role = "alert"; refusal.hidden = true;
    document.body.append(refusal);
    const tell = (text) => { refusal.textContent = text; refusal.hidden = text === ""; };
    // A stream that ends does not say why; the same request does.
    const explain = () => {
      const control = new AbortController();
      fetch(view.events, { signal: control.signal }).then((answer) => { control.abort(); tell(REFUSED[answer.status] || ""); }, () => tell(""));
    };
    const close = () => { clearTimeout(timer); if (stream) stream.close(); stream = null; };
    const open = () => {
      close();
      stream = new EventSource(`${view.events}?after=${encodeURIComponent(last)}`);
      stream.addEventListener("growth", (event) => { last = event.lastEventId; take(JSON.parse(event.data)); });
      stream.addEventListener("state", (event) => { wait = LOST; tell(""); say(event.data, event.data === "running" ? "Running" : ""); });
      stream.addEventListener("note", (event) => {
        const { text, is_wrong: isWrong } = JSON.parse(event.data);
        byId("note").role = isWrong ? "alert" : "note";
        byId("note").classList.toggle("wrong", isWrong);
        byId("note").textContent = text;
      });
      stream.addEventListener("again", () => location.reload());
      stream.addEventListener("error", () => {
        close();
        say("away", "No connection");
        explain();
        timer = setTimeout(open, wait);
        wait = Math.min(2 * wait, LONGEST_WAIT);
      });
    };
    document.addEventListener("visibilitychange", () => {
      clearTimeout(timer);
      if (!seen()) timer = setTimeout(close, UNSEEN);
      else if (!stream) open();
    });
    addEventListener("online", open);
    addEventListener("pageshow", (event) => { if (event.persisted) open(); });
    addEventListener("scroll", () => { if (unseen && distance() < 80) noteUnseen(0); }, { passive: true });
    open();
  };
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  const remember = (value) => { try { if (value) localStorage.setItem("tape-theme", value); return localStorage.getItem("tape-theme"); } catch { return null; } };
  const theme = remember();
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  byId("theme").addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
    root.dataset.theme = isDark ? "light" : "dark";
    remember(root.dataset.theme);
  });
  menu.addEventListener("click", () => { const isOpen = side.classList.toggle("open"); menu.ariaExpanded = String(isOpen); });
  byId("veil").addEventListener("click", closeSide);
  // To the next prompt or summary that is not folded, or the one before.
  const step = (by) => {
    const all = shown.filter(isStop), top = (row) => (byId(`e${row.id}`) || chunkOf(row.id)?.node)?.getBoundingClientRect().top ?? -1;
    const focused = all.findIndex((row) => document.activeElement?.id === `e${row.id}`);
    const above = all.findLastIndex((row) => top(row) < 72);
    const row = all[Math.min(Math.max((focused < 0 ? above : focused) + by, 0), all.length - 1)];
    if (!row) return;
    jump(row.id, false);
    const node = byId(`e${row.id}`);
    if (node) { node.tabIndex = -1; node.focus({ preventScroll: true }); }
  };
  let help = null;
  const KEYS_HELP = [["j k", "next, previous prompt"], ["Enter", "open or close what is folded there"], ["/", "search"], ["Esc", "leave the search, close"], ["?", "these keys"]];
  if (view.edits) KEYS_HELP.splice(3, 0, ["r", "rename the session"], ["l", "label the entry of the focus"], ["Delete", "move the session to the trash"]);
  const showKeys = () => {
    if (!help) {
      help = el("dialog", "keys", el("h2", "", "Keys"),
        el("dl", "", ...KEYS_HELP.map(([keys, what]) => el("div", "", el("dt", "", ...keys.split(" ").flatMap((key) => [el("kbd", "", key), " "])), el("dd", "", what)))),
        button("plain-button", () => help.close(), "Close"));
      help.ariaLabel = "Keys";
      document.body.append(help);
    }
    help.showModal();
  };
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") { if (find.value) { find.value = ""; search(); } find.blur(); closeSide(); }
    if (event.ctrlKey || event.metaKey || event.altKey || document.activeElement === find || help?.open) return;
    const act = { "/": () => find.focus(), "?": showKeys, j: () => step(1), k: () => step(-1) }[event.key];
    if (act) { event.preventDefault(); act(); }
    else if (event.key === "Enter" && document.activeElement?.matches(".row")) document.activeElement.querySelector("summary, .open")?.click();
  });
  const follow = () => {
    const wish = location.hash.slice(1);
    const id = /^[0-9a-f]{4,40}$/.test(wish) && [...entries.keys()].find((one) => one.startsWith(wish));
    if (id) reveal(id);
  };
  addEventListener("hashchange", follow);
  addEventListener("beforeprint", () => { near.disconnect(); chunks.forEach(draw); });
  addEventListener("afterprint", () => chunks.forEach((chunk) => near.observe(chunk.node)));

  if (branch) { buildRows(); showRows(); drawSide(); drawSums(); follow(); }
  if (view.events) listen();
  root.dataset.ready = "true";
})();
