-- The columns that any query needs, read once.
-- (Also dropping rows before 2024 here was tried: less memory, but more time.)
CREATE TABLE transactions AS
SELECT transaction_id, store_id, user_id, final_amount, created_at FROM files.transactions;

CREATE TABLE transaction_items AS
SELECT item_id, quantity, subtotal, created_at FROM files.transaction_items;

CREATE TABLE users AS SELECT user_id, birthdate FROM files.users;

CREATE TABLE menu_items AS SELECT item_id, item_name FROM files.menu_items;

CREATE TABLE stores AS SELECT store_id, store_name FROM files.stores;
