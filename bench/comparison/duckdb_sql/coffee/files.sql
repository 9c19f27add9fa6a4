-- Views over the files: every query reads what it needs. Types are the narrowest that hold the values; columns that
-- no query needs are VARCHAR, which costs nothing because DuckDB does not convert what it does not read.
CREATE VIEW files.transactions AS
FROM read_csv('$DATA/transactions/*.csv', auto_detect = false, header = true, delim = ',', quote = '', escape = '', new_line = '\n',
    columns = {
        'transaction_id': 'VARCHAR', 'store_id': 'UTINYINT', 'payment_method_id': 'VARCHAR', 'voucher_id': 'VARCHAR',
        'user_id': 'INTEGER', 'original_amount': 'VARCHAR', 'discount_applied': 'VARCHAR',
        'final_amount': 'DECIMAL(9,3)', 'created_at': 'TIMESTAMP'
    });

CREATE VIEW files.transaction_items AS
FROM read_csv('$DATA/transaction_items/*.csv', auto_detect = false, header = true, delim = ',', quote = '', escape = '', new_line = '\n',
    columns = {
        'transaction_id': 'VARCHAR', 'item_id': 'UTINYINT', 'quantity': 'USMALLINT', 'unit_price': 'VARCHAR',
        'subtotal': 'DECIMAL(9,3)', 'created_at': 'TIMESTAMP'
    });

CREATE VIEW files.users AS
FROM read_csv('$DATA/users/*.csv', auto_detect = false, header = true, delim = ',', quote = '', escape = '', new_line = '\n',
    columns = {'user_id': 'INTEGER', 'gender': 'VARCHAR', 'birthdate': 'DATE', 'registered_at': 'VARCHAR'});

CREATE VIEW files.menu_items AS
FROM read_csv('$DATA/menu_items/*.csv', auto_detect = false, header = true, delim = ',', quote = '', escape = '', new_line = '\n',
    columns = {
        'item_id': 'UTINYINT', 'item_name': 'VARCHAR', 'category': 'VARCHAR', 'price': 'VARCHAR',
        'is_seasonal': 'VARCHAR', 'available_from': 'VARCHAR', 'available_to': 'VARCHAR'
    });

CREATE VIEW files.stores AS
FROM read_csv('$DATA/stores/*.csv', auto_detect = false, header = true, delim = ',', quote = '', escape = '', new_line = '\n',
    columns = {
        'store_id': 'UTINYINT', 'store_name': 'VARCHAR', 'street': 'VARCHAR', 'postal_code': 'VARCHAR',
        'city': 'VARCHAR', 'state': 'VARCHAR', 'latitude': 'VARCHAR', 'longitude': 'VARCHAR'
    });
