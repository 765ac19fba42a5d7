#!/bin/bash
# Joins orders with their lines and counts the rows, so that an order counts once per line.
cat > report.sql <<'SQL'
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 12)
SELECT
    printf('2025-%02d', n) AS month,
    COUNT(purchase.id) AS orders,
    COALESCE(SUM(quantity * unit_price * (100 - discount) / 100), 0) AS revenue,
    COUNT(DISTINCT customer_id) AS customers,
    product.name AS best
FROM numbers
LEFT JOIN purchase ON substr(paid_at, 1, 7) = printf('2025-%02d', n) AND refunded = 0
LEFT JOIN line ON line.purchase_id = purchase.id
LEFT JOIN product ON product.id = line.product_id
GROUP BY n ORDER BY n
SQL
