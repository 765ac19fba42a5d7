#!/bin/bash
cat > migration.sql <<'SQL'
PRAGMA foreign_keys = OFF;
BEGIN;
DROP VIEW boss;
CREATE TABLE new_person (
    id INTEGER PRIMARY KEY,
    first TEXT NOT NULL,
    last TEXT NOT NULL,
    email TEXT COLLATE NOCASE UNIQUE,
    manager_id INTEGER REFERENCES person (id)
);
-- `head` takes words off `rest`, one by one; what is left is the last one.
WITH RECURSIVE words (id, head, word, rest) AS (
    SELECT id, '', '', trim(name) || ' ' FROM person
    UNION ALL
    SELECT
        id,
        trim(head || ' ' || word),
        substr(rest, 1, instr(rest, ' ') - 1),
        ltrim(substr(rest, instr(rest, ' ')))  || CASE WHEN trim(substr(rest, instr(rest, ' '))) = '' THEN '' ELSE ' ' END
    FROM words WHERE rest != ''
),
names AS (SELECT id, head, word FROM words WHERE rest = '')
INSERT INTO new_person
SELECT
    person.id,
    CASE WHEN head = '' THEN word ELSE head END,
    CASE WHEN head = '' THEN '' ELSE word END,
    CASE WHEN person.id = (
        SELECT MIN(other.id) FROM person AS other WHERE lower(other.email) = lower(person.email)
    ) THEN email END,
    manager_id
FROM person JOIN names ON names.id = person.id;
DROP TABLE person;
ALTER TABLE new_person RENAME TO person;
CREATE VIEW boss AS
    SELECT
        person.id,
        trim(person.first || ' ' || person.last) AS name,
        trim(manager.first || ' ' || manager.last) AS manager
    FROM person JOIN person AS manager ON manager.id = person.manager_id;
COMMIT;
PRAGMA foreign_keys = ON;
SQL
