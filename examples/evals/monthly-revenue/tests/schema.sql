CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE purchase (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customer (id),
    ordered_at TEXT NOT NULL,              -- YYYY-MM-DD HH:MM:SS
    paid_at TEXT,                          -- the same form, or NULL
    discount INTEGER NOT NULL DEFAULT 0,   -- percent
    refunded INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE line (
    purchase_id INTEGER NOT NULL REFERENCES purchase (id),
    product_id INTEGER NOT NULL REFERENCES product (id),
    quantity INTEGER NOT NULL,
    unit_price INTEGER NOT NULL            -- cents
);
