#!/bin/bash
cat > report.sql <<'SQL'
WITH RECURSIVE
numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 12),
months AS (SELECT printf('2025-%02d', n) AS month FROM numbers),
paid AS (
    SELECT id, customer_id, discount, substr(paid_at, 1, 7) AS month
    FROM purchase WHERE paid_at IS NOT NULL AND refunded = 0
),
sums AS (
    SELECT paid.*, COALESCE(
        (SELECT SUM(quantity * unit_price) FROM line WHERE purchase_id = paid.id), 0
    ) * (100 - discount) / 100 AS cents
    FROM paid
),
units AS (
    SELECT paid.month, product.name, ROW_NUMBER() OVER (
        PARTITION BY paid.month ORDER BY SUM(line.quantity) DESC, product.name
    ) AS place
    FROM paid
    JOIN line ON line.purchase_id = paid.id
    JOIN product ON product.id = line.product_id
    GROUP BY paid.month, product.id
)
SELECT
    months.month,
    COUNT(sums.id) AS orders,
    COALESCE(SUM(sums.cents), 0) AS revenue,
    COUNT(DISTINCT sums.customer_id) AS customers,
    (SELECT name FROM units WHERE units.month = months.month AND place = 1) AS best
FROM months LEFT JOIN sums ON sums.month = months.month
GROUP BY months.month
ORDER BY months.month
SQL
