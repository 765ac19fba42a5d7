"""The web view of a store: pages to look at sessions with, served on this machine.

    who may ask           access (names, token; pure), kept_address (token and port of a store),
                          viewers (people whom a proxy lets in, and what they see; pure)
    who looked            view_audit
    what may be changed   changes; nothing without `--write`
    a copy is pulled      pulling
    one request           gate (refuses, or lets through), application (the table of routes)
    what a page asks      site (what all pages share), store_view (one store, from any thread)
    what it answers       pages/ (one module each), templates/ (one each, on `base.html`),
                          templating (how they are filled in), static/ (scripts, style, vendor/)
    a stream, a port      event_stream (server-sent events), listening

A page is a module in `pages/` with `build_routes(site)`, its row in `PAGES` in `application`, and a
template that extends `base.html` and fills `title`, `side` and `main`. Its functions are plain, and
run in threads: `site.view.ask(question)` is the index, `site.view.open_tape(id)` a tape. What a
search or a facet changes is `<div id="results">`: links and forms of class `swap` replace only that
(htmx, `site.js`), and without a script they load the page. Scripts are named in `templating` as the
policy of all pages allows them by their hashes. Nobody but `tape.cli` imports this, and `gong.rpc`
what both servers need: access, event_stream, listening.
"""
