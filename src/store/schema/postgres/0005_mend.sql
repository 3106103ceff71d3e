-- hikyaku, schema version 5: closes a hole in the rights of version 3, and keeps facts that operators missed.

-- The function runs with its owner's rights and takes its target from the table that it hangs on. Nobody but the owner may hang
-- it on a table: see SECURITY.md.
REVOKE ALL ON FUNCTION @outbox_figures_gone() FROM PUBLIC;
