CREATE TABLE person (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT,
    manager_id INTEGER REFERENCES person (id)
);
CREATE TABLE note (
    id INTEGER PRIMARY KEY,
    person_id INTEGER NOT NULL REFERENCES person (id) ON DELETE CASCADE,
    text TEXT NOT NULL
);
CREATE VIEW boss AS
    SELECT person.id, person.name, manager.name AS manager
    FROM person JOIN person AS manager ON manager.id = person.manager_id;
