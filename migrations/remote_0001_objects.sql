-- The objects of remotes: one row a key. Create is INSERT … ON CONFLICT DO NOTHING: one row = first.
-- No sequence, trigger or advisory lock. Bodies are compressed already.
CREATE TABLE tape.objects (
    team text NOT NULL,
    key text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    made timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (team, key)
);
ALTER TABLE tape.objects ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE tape.objects ENABLE ROW LEVEL SECURITY;
CREATE POLICY team ON tape.objects USING (team = current_setting('tape.team', true));
