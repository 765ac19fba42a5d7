-- The catalogue: what the chunks of a team hold, for lists and search in SQL. Derived: whoever may
-- write it brings it up to date after a push, and makes it again (`tape remote verify --rebuild`).
CREATE TABLE tape.catalogue (
    team text PRIMARY KEY,
    log bigint NOT NULL -- the number of the newest line of the push log that is in
);
CREATE TABLE tape.tapes (
    team text NOT NULL,
    id bytea NOT NULL,
    seq bigint NOT NULL, -- the number of the newest chunk that is in
    title text,
    project text,
    repository text,
    person text,
    machine text,
    model text,
    created timestamptz,
    updated timestamptz,
    entries bigint NOT NULL DEFAULT 0,
    cost double precision,
    trashed timestamptz,
    hold boolean NOT NULL DEFAULT false,
    state bytea NOT NULL, -- what the next chunk continues
    PRIMARY KEY (team, id)
);
CREATE INDEX tapes_newest ON tape.tapes (team, updated DESC, id DESC) WHERE trashed IS NULL;
CREATE TABLE tape.said (
    team text NOT NULL,
    tape bytea NOT NULL,
    entry bytea NOT NULL,
    time timestamptz NOT NULL,
    type text NOT NULL,
    head text NOT NULL, -- how the text begins
    words tsvector NOT NULL,
    PRIMARY KEY (team, tape, entry)
);
-- New words wait in a list that every search reads: it is kept short.
CREATE INDEX said_words ON tape.said USING gin (words) WITH (gin_pending_list_limit = 256);
CREATE INDEX said_newest ON tape.said (team, time DESC);
-- Who took, held, redacted or exported what. Grant INSERT, and SELECT to those who audit.
CREATE TABLE tape.audit (
    team text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    who text NOT NULL,
    machine text NOT NULL,
    did text NOT NULL,
    tape bytea,
    why text NOT NULL
);
CREATE INDEX audit_newest ON tape.audit (team, at DESC);
ALTER TABLE tape.catalogue ENABLE ROW LEVEL SECURITY;
ALTER TABLE tape.tapes ENABLE ROW LEVEL SECURITY;
ALTER TABLE tape.said ENABLE ROW LEVEL SECURITY;
ALTER TABLE tape.audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY team ON tape.catalogue USING (team = current_setting('tape.team', true));
CREATE POLICY team ON tape.tapes USING (team = current_setting('tape.team', true));
CREATE POLICY team ON tape.said USING (team = current_setting('tape.team', true));
CREATE POLICY team ON tape.audit USING (team = current_setting('tape.team', true));
