#!/bin/bash
# Drops the old table with foreign keys on, so that the notes go with it, and cuts at the first blank.
cat > migration.sql <<'SQL'
DROP VIEW boss;
CREATE TABLE fresh (
    id INTEGER PRIMARY KEY, first TEXT NOT NULL, last TEXT NOT NULL, email TEXT UNIQUE,
    manager_id INTEGER REFERENCES fresh (id)
);
INSERT INTO fresh
SELECT id, substr(name, 1, instr(name || ' ', ' ') - 1), trim(substr(name, instr(name || ' ', ' '))), email, manager_id
FROM person ORDER BY id;
DROP TABLE person;
ALTER TABLE fresh RENAME TO person;
CREATE VIEW boss AS
    SELECT person.id, trim(person.first || ' ' || person.last) AS name, trim(manager.first || ' ' || manager.last) AS manager
    FROM person JOIN person AS manager ON manager.id = person.manager_id;
SQL
