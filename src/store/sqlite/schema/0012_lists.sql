-- hikyaku, schema version 12.
SELECT 1;
